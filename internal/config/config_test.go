package config

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

const secret = "SECKILL_JWT_SECRET=0123456789abcdef0123456789abcdef"

func TestLoad_DefaultsServeLocalhost(t *testing.T) {
	cfg, warnings, err := Load(API, []string{secret, "PATH=/bin"})
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Equal(t, Config{
		HTTP: HTTP{Addr: ":8080", Currency: "CNY"},
		Redis: Redis{
			Addrs: []string{"127.0.0.1:6379"}, WaitTimeout: 500 * time.Millisecond,
			GateLifetime: 5 * time.Second,
		},
		MySQL: MySQL{DSN: "seckill:seckill@tcp(127.0.0.1:3306)/seckill"},
		AMQP:  AMQP{URLs: "amqp://guest:guest@127.0.0.1:5672/", PublishTimeout: time.Second},
		Auth:  Auth{JWTSecret: "0123456789abcdef0123456789abcdef"},
		OIDC:  OIDC{RoleClaim: "role", Session: time.Hour},
		Order: Order{
			PaymentTimeout: 15 * time.Minute, Shards: 4, BatchSize: 500,
			BatchLinger: 50 * time.Millisecond, MaxBacklogAge: 0,
			AdmissionTimeout: 30 * time.Second,
		},
		Payment: Payment{Provider: "test", StripeURL: "https://api.stripe.com"},
		Limiter: Limiter{GRPCAddr: "127.0.0.1:8081", Timeout: 50 * time.Millisecond},
		Process: Process{
			OpsAddr: "127.0.0.1:9090", LogLevel: slog.LevelInfo, LogFormat: "json",
			MemoryLimit: 512, ShutdownTimeout: 15 * time.Second,
		},
		Trace: Trace{OneIn: 100},
	}, cfg)
}

// TestLoad_OriginsAreNoPatterns checks that an origin is one site.
func TestLoad_OriginsAreNoPatterns(t *testing.T) {
	for _, origin := range []string{"https://*.shop.example", "https://shop*", "*"} {
		_, _, err := Load(API, []string{secret, "SECKILL_CORS_ORIGINS=" + origin})
		require.ErrorContains(t, err, "SECKILL_CORS_ORIGINS", origin)
	}
}

func TestLoad_ProgramsHaveOwnDefaults(t *testing.T) {
	cfg, _, err := Load(Consumer, []string{secret})
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:9091", cfg.Process.OpsAddr)
	cfg, _, err = Load(Standalone, nil)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:8080", cfg.HTTP.Addr)
	require.Equal(t, "text", cfg.Process.LogFormat)
	cfg, _, err = Load(RateLimit, nil)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:8082", cfg.HTTP.Addr)
	require.Equal(t, "127.0.0.1:9092", cfg.Process.OpsAddr)
}

func TestLoad_ReadsTheEnvironment(t *testing.T) {
	const before, next = "a secret that signed until today", "a secret that will sign tomorrow"
	cfg, _, err := Load(API, []string{
		secret, "SECKILL_REDIS_ADDRS=a:1,b:2", "SECKILL_TRUSTED_PROXIES=10.0.0.0/8,192.0.2.1",
		"SECKILL_LOG_LEVEL=debug", "SECKILL_MAX_BACKLOG_AGE=10s", "SECKILL_HTTP_ADDR=",
		"SECKILL_ORDER_SECRET=fedcba9876543210fedcba9876543210",
		"SECKILL_OLD_ORDER_SECRETS=" + before + "," + next,
	})
	require.NoError(t, err)
	require.EqualValues(t, "fedcba9876543210fedcba9876543210", cfg.Auth.OrderSecret)
	require.EqualValues(t, before+","+next, cfg.Auth.OldOrderSecrets)
	require.Equal(t, []string{"a:1", "b:2"}, cfg.Redis.Addrs)
	require.Equal(t,
		Proxies{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.1/32")},
		cfg.HTTP.TrustedProxies)
	require.Equal(t, slog.LevelDebug, cfg.Process.LogLevel)
	require.Equal(t, 10*time.Second, cfg.Order.MaxBacklogAge)
	require.Equal(t, ":8080", cfg.HTTP.Addr, "an empty value keeps the default")
	cfg.Auth.OrderSecret, cfg.Auth.OldOrderSecrets = "", ""
	derived := must.Get(cfg.Auth.OrderKeys())(t)
	require.Len(t, derived, 1)
	cfg.Auth.OrderSecret, cfg.Auth.OldOrderSecrets = "first", before+","+next
	require.Equal(t, [][]byte{[]byte("first"), derived[0], []byte(before), []byte(next)},
		must.Get(cfg.Auth.OrderKeys())(t), "what the derived secret signed before still verifies")
}

// TestOrderKeys_SecretWithALineBreakVerifiesAfterItsRotation moves a secret as it was read from a
// file: the copy in the list is the same text.
func TestOrderKeys_SecretWithALineBreakVerifiesAfterItsRotation(t *testing.T) {
	const old, next = "a secret that signed until today\n", "a secret that will sign tomorrow\n"
	signed := must.Get(Auth{OrderSecret: old, OldOrderSecrets: next}.OrderKeys())(t)
	after := must.Get(Auth{OrderSecret: next, OldOrderSecrets: old}.OrderKeys())(t)
	require.Contains(t, after, signed[0])
	require.Contains(t, signed, after[0])
	require.Equal(t, [][]byte{[]byte(next)},
		must.Get(Auth{OrderSecret: next, OldOrderSecrets: " ,\n"}.OrderKeys())(t))
}

func TestLoad_ReportsAllProblemsTogether(t *testing.T) {
	_, _, err := Load(API, []string{
		"SECKILL_JWT_SECRET=tooshort-but-secret", "SECKILL_ORDER_SHARDS=0",
		"SECKILL_PAYMENT_TIMEOUT=soon", "SECKILL_LOG_FORMAT=xml", "SECKILL_LOG_LEVEL=loud",
		"SECKILL_TRUSTED_PROXIES=everyone", "SECKILL_REDIS_ADDRS=here", "SECKILL_HTTP_ADDR=80",
		"SECKILL_PUBLISH_TIMEOUT=1h", "SECKILL_OTLP_ENDPOINT=collector:4318",
		"SECKILL_REDIS_TLS=perhaps", "SECKILL_PAYMENT_SECRET=tooshort",
		"SECKILL_PHONE_KEYS=1:tooshort",
		"SECKILL_OLD_ORDER_SECRETS=tooshort", "SECKILL_BATCH_SIZE=many", // not the API's
	})
	require.Error(t, err)
	for _, name := range []string{
		"JWT_SECRET", "ORDER_SHARDS", "PAYMENT_TIMEOUT", "LOG_FORMAT", "LOG_LEVEL",
		"TRUSTED_PROXIES", "REDIS_ADDRS", "HTTP_ADDR", "PUBLISH_TIMEOUT", "PAYMENT_SECRET",
		"PHONE_KEYS", "OLD_ORDER_SECRETS", "OTLP_ENDPOINT", "REDIS_TLS",
	} {
		require.Contains(t, err.Error(), "SECKILL_"+name+":")
	}
	require.NotContains(t, err.Error(), "SECKILL_BATCH_SIZE")
	require.NotContains(t, err.Error(), "tooshort", "the error contains a secret")
}

// TestLoad_SpacesAroundAValueDoNotCount reads values with the line break of a file, or with spaces.
// A password and a secret that signs keep theirs.
func TestLoad_SpacesAroundAValueDoNotCount(t *testing.T) {
	cfg, _, err := Load(API, []string{
		secret, "SECKILL_HTTP_ADDR= :80", "SECKILL_OPS_ADDR=127.0.0.1:90\r", "SECKILL_LOG_FORMAT= ",
		"SECKILL_PAYMENT_TIMEOUT=1m\n", "SECKILL_OIDC_ROLE_CLAIM=a.b ",
		"SECKILL_REDIS_PASSWORD= p\n", "SECKILL_ORDER_SECRET=0123456789abcdef0123456789abcdef\n",
		"SECKILL_STRIPE_SECRET_KEY=sk\n", "SECKILL_STRIPE_WEBHOOK_SECRET=whsec\n",
		"SECKILL_MYSQL_DSN=u:p@tcp(db:3306)/seckill\n",
	})
	require.NoError(t, err)
	require.Equal(t, ":80", cfg.HTTP.Addr)
	require.Equal(t, "127.0.0.1:90", cfg.Process.OpsAddr)
	require.Equal(t, "json", cfg.Process.LogFormat, "nothing but spaces keeps the default")
	require.Equal(t, time.Minute, cfg.Order.PaymentTimeout)
	require.Equal(t, "a.b", cfg.OIDC.RoleClaim)
	require.EqualValues(t, " p\n", cfg.Redis.Password)
	require.EqualValues(t, "0123456789abcdef0123456789abcdef\n", cfg.Auth.OrderSecret)
	require.EqualValues(t, "sk whsec", cfg.Payment.StripeKey+" "+cfg.Payment.WebhookSecret)
	require.EqualValues(t, "u:p@tcp(db:3306)/seckill", cfg.MySQL.DSN)
}

// TestLoad_ProblemNamesTheForm checks that an operator reads which values a setting may have.
func TestLoad_ProblemNamesTheForm(t *testing.T) {
	for setting, want := range map[string]string{
		"SECKILL_PAYMENT_TIMEOUT=15":      "must be a duration such as 500ms or 15s",
		"SECKILL_ORDER_SHARDS=4.5":        "SECKILL_ORDER_SHARDS: must be a whole number (queues)",
		"SECKILL_HTTP_ADDR=:99999":        `SECKILL_HTTP_ADDR: is ":99999", must be host:port`,
		"SECKILL_OPS_ADDR=127.0.0.1:none": `SECKILL_OPS_ADDR: is "127.0.0.1:none", must be host:port`,
	} {
		_, _, err := Load(API, []string{secret, setting})
		require.ErrorContains(t, err, want)
	}
}

// TestLoad_ValueThatDoesNotParseIsOneProblem checks that no range of its zero value is reported
// too.
func TestLoad_ValueThatDoesNotParseIsOneProblem(t *testing.T) {
	_, _, err := Load(API, []string{secret, "SECKILL_GATE_LIFETIME=5"})
	require.ErrorContains(t, err, "SECKILL_GATE_LIFETIME: must be a duration")
	require.NotContains(t, err.Error(), "0s")
}

// TestLoad_HidesThePasswordOfAWrongAddress checks URLs where an address without a user belongs.
func TestLoad_HidesThePasswordOfAWrongAddress(t *testing.T) {
	_, _, err := Load(API, []string{
		secret, "SECKILL_REDIS_ADDRS=redis://u:hidden@here:1",
		"SECKILL_OTLP_ENDPOINT=://u:hidden@there",
	})
	require.ErrorContains(t, err, `SECKILL_REDIS_ADDRS: is "***@here:1", must be host:port`)
	require.ErrorContains(t, err, "@there")
	require.NotContains(t, err.Error(), "hidden")
}

func TestLoad_NamesABadCurrency(t *testing.T) {
	for _, p := range []Program{API, Consumer, Standalone} {
		_, _, err := Load(p, []string{secret, "SECKILL_CURRENCY=EURO"})
		require.ErrorContains(t, err,
			`SECKILL_CURRENCY: is "EURO", must be the ISO 4217 code of a currency`)
		for _, code := range []string{"VES", "eur"} {
			cfg, _, err := Load(p, []string{secret, "SECKILL_CURRENCY=" + code})
			require.NotContains(t, fmt.Sprint(err), "SECKILL_CURRENCY")
			require.Equal(t, strings.ToUpper(code), cfg.HTTP.Currency)
		}
	}
}

func TestLoad_RequiresSecrets(t *testing.T) {
	_, _, err := Load(API, nil)
	require.ErrorContains(t, err, "SECKILL_JWT_SECRET: is required without SECKILL_OIDC_ISSUER")
	_, _, err = Load(Consumer, nil)
	require.ErrorIs(t, err, errNoSecret)
	require.ErrorContains(t, err, "neither SECKILL_ORDER_SECRET nor SECKILL_JWT_SECRET is set")
	_, _, err = Load(Consumer, []string{"SECKILL_ORDER_SECRET=0123456789abcdef0123456789abcdef"})
	require.NoError(t, err)
}

// TestLoad_RequiresWhatAnIssuerNeeds checks that a program without the API needs none of it.
func TestLoad_RequiresWhatAnIssuerNeeds(t *testing.T) {
	issuer := []string{secret, "SECKILL_OIDC_ISSUER=https://id.example"}
	_, _, err := Load(API, issuer)
	require.ErrorContains(t, err, "SECKILL_OIDC_AUDIENCE: is required with SECKILL_OIDC_ISSUER")
	_, _, err = Load(Consumer, issuer)
	require.NoError(t, err)
	cfg, _, err := Load(API, append(issuer, "SECKILL_OIDC_AUDIENCE=sale",
		"SECKILL_OIDC_CLIENT_SECRET=hush"))
	require.NoError(t, err)
	require.NotContains(t, fmt.Sprintf("%+v %#v", cfg, cfg), "hush")
}

// TestLoad_SettingsOfAnIssuerRequireIt checks that a program does not start without the issuer that
// its other settings describe: its users could not sign in.
func TestLoad_SettingsOfAnIssuerRequireIt(t *testing.T) {
	for _, s := range []string{"AUDIENCE", "CLIENT_ID", "CLIENT_SECRET"} {
		name := "SECKILL_OIDC_" + s
		for _, p := range []Program{API, Standalone} {
			_, _, err := Load(p, []string{secret, name + "=sale"})
			require.EqualError(t, err, "SECKILL_OIDC_ISSUER: is required with "+name)
		}
		_, _, err := Load(Consumer, []string{secret, name + "=sale"})
		require.NoError(t, err)
	}
}

// TestLoad_IssuerIsEnough loads an API whose only source of tokens is an issuer. Its sessions are
// signed with a secret that is derived from the order secret. A former order secret signs none.
func TestLoad_IssuerIsEnough(t *testing.T) {
	const before, now = "an order secret that signed before", "an order secret that signs today"
	issuer := []string{
		"SECKILL_OIDC_ISSUER=https://id.example", "SECKILL_OIDC_AUDIENCE=sale",
	}
	_, _, err := Load(API, issuer)
	require.ErrorContains(t, err, "SECKILL_ORDER_SECRET: is required with SECKILL_OIDC_ISSUER")
	old, _, err := Load(API, append(issuer, "SECKILL_ORDER_SECRET="+before))
	require.NoError(t, err)
	cfg, _, err := Load(API, append(issuer, "SECKILL_ORDER_SECRET="+now,
		"SECKILL_OLD_ORDER_SECRETS="+before))
	require.NoError(t, err)
	keys := cfg.Auth.SessionKeys()
	require.Len(t, keys, 1)
	require.NotContains(t, keys, old.Auth.SessionKeys()[0])
	require.Len(t, keys[0], 32)
	for _, key := range must.Get(cfg.Auth.OrderKeys())(t) {
		require.NotContains(t, keys, key)
	}
}

// TestLoad_AllJWTSecretsVerify checks every secret, and that what was signed with each verifies.
func TestLoad_AllJWTSecretsVerify(t *testing.T) {
	a, b := strings.Repeat("a", 32), strings.Repeat("b", 32)
	load := func(ring string) Config {
		cfg, _, err := Load(API, []string{"SECKILL_JWT_SECRET=" + ring})
		require.NoError(t, err)
		return cfg
	}
	both := load(b + ", " + a)
	require.Equal(t, [][]byte{[]byte(b), []byte(a)}, both.Auth.JWTSecret.Ring())
	one := must.Get(load(a).Auth.OrderKeys())(t)
	two := must.Get(both.Auth.OrderKeys())(t)
	require.Len(t, two, 2)
	require.Equal(t, one[0], two[1], "the former derived order secret verifies")
	for _, ring := range []string{a + ",", a + ",short", ","} {
		_, _, err := Load(API, []string{"SECKILL_JWT_SECRET=" + ring})
		require.ErrorContains(t, err, "SECKILL_JWT_SECRET: is", ring)
		require.NotContains(t, err.Error(), a)
	}
}

func TestOrderKeys_ListOfOldSecretsMayHaveSpaces(t *testing.T) {
	const a, b = "an order secret that signed before", "an order secret that signed long ago"
	keys := must.Get(Auth{JWTSecret: a, OldOrderSecrets: a + ", " + b}.OrderKeys())(t)
	require.Contains(t, keys, []byte(b))
}

// TestLoad_SpacesMakeNoOldOrderSecretLonger checks that no list with a key of a few bytes, or of
// none, is accepted: anybody could sign numbers with it.
func TestLoad_SpacesMakeNoOldOrderSecretLonger(t *testing.T) {
	const a, spaces = "an order secret that signed before", "                                "
	for _, list := range []string{spaces, a + "," + spaces, a + "," + spaces + "short", a + ","} {
		_, _, err := Load(API, []string{secret, "SECKILL_OLD_ORDER_SECRETS=" + list})
		require.ErrorContains(t, err, "SECKILL_OLD_ORDER_SECRETS: is", list)
	}
}

// TestLoad_RequiresWhatStripeNeeds checks that each program names what its provider lacks.
func TestLoad_RequiresWhatStripeNeeds(t *testing.T) {
	stripe := []string{secret, "SECKILL_PAYMENT_PROVIDER=stripe"}
	_, _, err := Load(API, stripe)
	for _, name := range []string{"STRIPE_SECRET_KEY", "STRIPE_WEBHOOK_SECRET", "PUBLIC_URL"} {
		require.ErrorContains(t, err, "SECKILL_"+name+": is required")
	}
	stripe = append(stripe, "SECKILL_STRIPE_SECRET_KEY=sk",
		"SECKILL_PUBLIC_URL=https://sale.example")
	_, _, err = Load(Consumer, stripe)
	require.NoError(t, err)
	_, _, err = Load(Standalone, stripe)
	require.ErrorContains(t, err, "SECKILL_STRIPE_WEBHOOK_SECRET")
	_, _, err = Load(API, append(stripe, "SECKILL_STRIPE_WEBHOOK_SECRET=whsec"))
	require.NoError(t, err)
}

// TestLoad_PublicURLHasOnlyAPath refuses addresses below which there are no pages: what follows
// would be a part of the query or the fragment. Buyers would read the password of a user.
func TestLoad_PublicURLHasOnlyAPath(t *testing.T) {
	for _, address := range []string{
		"https://sale.example/?a=b", "https://sale.example?", "https://sale.example/#top",
		"https://ann:secret@sale.example",
	} {
		_, _, err := Load(API, []string{secret, "SECKILL_PUBLIC_URL=" + address})
		require.ErrorContains(t, err, "SECKILL_PUBLIC_URL: must have", address)
		require.NotContains(t, err.Error(), "secret@")
	}
	for _, address := range []string{"https://sale.example/", "http://127.0.0.1:8080/shop"} {
		_, _, err := Load(API, []string{secret, "SECKILL_PUBLIC_URL=" + address})
		require.NoError(t, err)
	}
}

func TestLoad_WarnsOfUnknownNames(t *testing.T) {
	_, warnings, err := Load(API, []string{
		secret, "SECKILL_REDIS_ADDR=x:1", "SECKILL_BATCH_SIZE=7", "OTHER=1", "SECKILL_HTPP_ADR=:1",
	})
	require.NoError(t, err)
	require.Equal(t, []string{
		"SECKILL_HTPP_ADR is not a setting; did you mean SECKILL_HTTP_ADDR?",
		"SECKILL_REDIS_ADDR is not a setting; did you mean SECKILL_REDIS_ADDRS?",
	}, warnings)
}

// TestLoad_WarnsOfQuotationMarks loads settings with the quotation marks that Kubernetes keeps.
func TestLoad_WarnsOfQuotationMarks(t *testing.T) {
	_, warnings, err := Load(API, []string{
		secret, "SECKILL_ORDER_SECRET='0123456789abcdef0123456789abcdef'",
		`SECKILL_SHOP_NAME="Tea"`, "SECKILL_REDIS_PASSWORD='", "SECKILL_STRIPE_SECRET_KEY=a'",
	})
	require.NoError(t, err)
	require.Equal(t, []string{
		"SECKILL_ORDER_SECRET has quotation marks, which count as a part of the value: " +
			"remove them from the file of settings",
		"SECKILL_SHOP_NAME has quotation marks, which count as a part of the value: " +
			"remove them from the file of settings",
	}, warnings)
}

// TestLoad_WarnsOfSecretsOfExamples loads the secrets of each file and page that has an example, as
// of an operator who has copied it and changed nothing. A secret that also verifies counts too.
func TestLoad_WarnsOfSecretsOfExamples(t *testing.T) {
	line := regexp.MustCompile(`(?m)(SECKILL_(?:JWT|ORDER)_SECRET)=([\w-]+)$`)
	for _, file := range []string{
		"../../.env.example", "../../deploy/k8s/overlays/example/secrets.env",
		"../../docs/how-to/deploy.md",
	} {
		examples := line.FindAllStringSubmatch(string(must.Get(os.ReadFile(file))(t)), -1)
		require.NotEmpty(t, examples, file)
		for _, example := range examples {
			_, warnings, err := Load(API, []string{secret, example[0]})
			require.NoError(t, err)
			require.Len(t, warnings, 1, file)
			require.Contains(t, warnings[0], example[1]+" is the value of an example")
			require.NotContains(t, warnings[0], example[2])
		}
	}
	_, warnings, err := Load(Consumer,
		[]string{secret + ",change-me-to-at-least-32-bytes-of-your-own"})
	require.NoError(t, err)
	require.Len(t, warnings, 1)
	_, warnings, err = Load(Consumer, []string{secret})
	require.NoError(t, err)
	require.Empty(t, warnings)
}

// TestLoad_ReadsOpenTelemetrysEndpoint checks that OpenTelemetry's own variable applies if
// SECKILL_OTLP_ENDPOINT is not set.
func TestLoad_ReadsOpenTelemetrysEndpoint(t *testing.T) {
	otel := "OTEL_EXPORTER_OTLP_ENDPOINT=http://everybodys:4318"
	cfg, warnings, err := Load(API, []string{secret, otel})
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Equal(t, "http://everybodys:4318", cfg.Trace.Endpoint)
	cfg, _, err = Load(API, []string{secret, otel, "SECKILL_OTLP_ENDPOINT=https://ours:4318"})
	require.NoError(t, err)
	require.Equal(t, "https://ours:4318", cfg.Trace.Endpoint)
}

func TestSecret_PrintsAsStars(t *testing.T) {
	cfg, _, err := Load(API, []string{
		secret, "SECKILL_MYSQL_DSN=user:hunter2@tcp(h:1)/d",
		"SECKILL_AMQP_URL=amqp://u:hunter2@h/",
		"SECKILL_PAYMENT_SECRET=hunter2hunter2hunter2hunter2hunter2",
		"SECKILL_STRIPE_SECRET_KEY=sk_hunter2", "SECKILL_STRIPE_WEBHOOK_SECRET=whsec_hunter2",
		"SECKILL_PHONE_KEYS=7:" +
			base64.StdEncoding.EncodeToString([]byte("hunter2hunter2hunter2hunter2hunt")),
	})
	require.NoError(t, err)
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "cfg", cfg, "dsn", cfg.MySQL.DSN)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "cfg", cfg, "dsn", cfg.MySQL.DSN)
	asJSON := must.Get(json.Marshal(cfg))(t)
	all := fmt.Sprintf("%v %+v %#v %s %q %x", cfg, cfg, cfg, cfg.MySQL.DSN, cfg.MySQL.DSN,
		cfg.MySQL.DSN) + string(asJSON) + log.String()
	for _, s := range []string{
		"hunter2", "aHVudGVyMmh1bnRlcjJodW50", "0123456789abcdef", fmt.Sprintf("%x", "hunter2"),
	} {
		require.NotContains(t, all, s)
	}
	require.Contains(t, all, "***")
	require.Equal(t, "user:hunter2@tcp(h:1)/d", cfg.MySQL.DSN.Reveal())
}

// TestSettings_WithSecretsPrintAsStars checks the type of each setting whose name says that it
// holds a secret, so that a new one is not forgotten.
func TestSettings_WithSecretsPrintAsStars(t *testing.T) {
	secretName := regexp.MustCompile(`SECRETS?$|PASSWORD|KEYS?$|TOKEN|DSN|AMQP_URL`)
	found := 0
	var check func(reflect.Type)
	check = func(settings reflect.Type) {
		for field := range settings.Fields() {
			name, ok := field.Tag.Lookup("env")
			switch {
			case !ok && field.Type.Kind() == reflect.Struct:
				check(field.Type)
			case secretName.MatchString(name):
				found++
				require.Contains(t, []reflect.Type{
					reflect.TypeFor[Secret](), reflect.TypeFor[[]Secret](),
				}, field.Type, name)
			}
		}
	}
	check(reflect.TypeFor[Config]())
	require.GreaterOrEqual(t, found, 12)
}

func TestHelp_ListsTheSettingsOfAProgram(t *testing.T) {
	var api, consumer bytes.Buffer
	Help(&api, API)
	Help(&consumer, Consumer)
	require.Contains(t, api.String(), "SECKILL_HTTP_ADDR (host:port) [:8080]")
	require.Contains(t, api.String(), "SECKILL_JWT_SECRET (comma list, each at least 32 bytes)\n")
	require.NotContains(t, api.String(), "SECKILL_BATCH_SIZE")
	require.Contains(t, consumer.String(), "SECKILL_BATCH_SIZE (orders) [500]")
	require.NotContains(t, consumer.String(), "SECKILL_HTTP_ADDR")
}

func TestSettings_AreAllDescribed(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Settings("") {
		require.True(t, strings.HasPrefix(s.Name, prefix), s.Name)
		require.False(t, seen[s.Name], s.Name)
		seen[s.Name] = true
		require.NotEmpty(t, s.Help, s.Name)
		require.NotEmpty(t, s.Unit, s.Name)
		require.NotEmpty(t, s.field.Tag.Get("in"), s.Name)
		if s.field.Type.Kind() == reflect.Int64 ||
			s.Unit != "debug, info, warn, error" && s.field.Type.Kind() == reflect.Int {
			require.Regexp(t, "min=.+,max=.+", s.field.Tag.Get("validate"), s.Name)
		}
	}
}

// TestEnvExample_HasEveryVariableOfCompose checks that nobody needs to read docker-compose.yml to
// know what may be set.
func TestEnvExample_HasEveryVariableOfCompose(t *testing.T) {
	compose := string(must.Get(os.ReadFile("../../docker-compose.yml"))(t))
	example := string(must.Get(os.ReadFile("../../.env.example"))(t))
	names := regexp.MustCompile(`\$\{([A-Z_]+)`).FindAllStringSubmatch(compose, -1)
	require.NotEmpty(t, names)
	for _, name := range names {
		require.Regexp(t, `(?m)^#?`+name[1]+`=`, example)
	}
}

// TestSettings_DeploymentsUseKnownNames checks the settings in all deployment files. A program only
// logs a warning for an unknown name.
func TestSettings_DeploymentsUseKnownNames(t *testing.T) {
	known := map[string]bool{}
	for _, s := range Settings("") {
		known[s.Name] = true
	}
	for _, file := range []string{
		"../../docker-compose.yml", "../../.env.example",
		"../../deploy/k8s/base/kustomization.yaml", "../../deploy/k8s/base/api.yaml",
		"../../deploy/k8s/base/order-consumer.yaml", "../../deploy/k8s/base/migrate.yaml",
		"../../deploy/k8s/overlays/example/secrets.env",
	} {
		text := must.Get(os.ReadFile(file))(t)
		names := regexp.MustCompile(`SECKILL_[A-Z_]+`).FindAllString(string(text), -1)
		require.NotEmpty(t, names, file)
		for _, name := range names {
			require.True(t, known[name], "%s names %s, which is no setting", file, name)
		}
	}
}
