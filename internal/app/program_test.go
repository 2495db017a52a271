package app

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/testing/fakestripe"
	"flashsale.dev/seckill/internal/testing/must"
)

func TestStart_WrongCommandLineIsOneLine(t *testing.T) {
	for _, c := range []struct{ arg, want string }{
		{"-nonsense", "flag provided but not defined: -nonsense (api -help lists the flags)"},
		{"nonsense", `api takes no argument "nonsense"`},
	} {
		var out, trouble strings.Builder
		_, _, err := Start(config.API, "api", nil, []string{c.arg}, nil, &out, &trouble)
		require.EqualError(t, err, c.want)
		require.Empty(t, out.String()+trouble.String(), "the caller prints the error")
	}
}

// TestStart_NamesAMistypedSetting checks that an operator who mistyped a required setting reads
// its likely name next to the complaint that it is missing.
func TestStart_NamesAMistypedSetting(t *testing.T) {
	var out, trouble strings.Builder
	environ := []string{"SECKILL_JWT_SECERT=x"}
	_, _, err := Start(config.API, "api", nil, nil, environ, &out, &trouble)
	require.EqualError(t, err, `settings (api -help lists them):
SECKILL_JWT_SECRET: is required without SECKILL_OIDC_ISSUER
SECKILL_JWT_SECERT is not a setting; did you mean SECKILL_JWT_SECRET?`)
}

func TestStart_HelpHasTheEnvironmentOnce(t *testing.T) {
	for _, p := range []config.Program{config.API, config.Consumer, config.Standalone} {
		var out strings.Builder
		_, _, err := Start(p, string(p), nil, []string{"-help"}, nil, &out, &out)
		require.ErrorIs(t, err, flag.ErrHelp)
		require.Equal(t, 1, strings.Count(out.String(), "Environment:"))
	}
}

// TestListen_NamesWhatToCorrect checks that only a port in use asks for another port.
func TestListen_NamesWhatToCorrect(t *testing.T) {
	used, err := Listen(t.Context(), "SECKILL_HTTP_ADDR", "127.0.0.1:0")
	require.NoError(t, err)
	defer used.Close()
	_, err = Listen(t.Context(), "SECKILL_HTTP_ADDR", used.Addr().String())
	require.ErrorContains(t, err, "(SECKILL_HTTP_ADDR; choose a free port)")
	for _, addr := range []string{"8080", "192.0.2.1:0", "127.0.0.1:99999"} {
		_, err = Listen(t.Context(), "-addr", addr)
		require.ErrorContains(t, err, "(-addr; must be host:port of this machine)")
	}
}

// TestNewProvider_HasEveryNameOfTheSetting checks that no name of a provider falls back to the one
// that takes no money.
func TestNewProvider_HasEveryNameOfTheSetting(t *testing.T) {
	cfg := config.Config{HTTP: config.HTTP{Currency: "EUR"}, Payment: config.Payment{
		StripeKey: fakestripe.Key, WebhookSecret: fakestripe.WebhookSecret,
		StripeURL: "https://api.stripe.com", PublicURL: "https://sale.example",
	}}
	providers := map[string]bool{}
	for _, s := range config.Settings(config.API) {
		if s.Name == "SECKILL_PAYMENT_PROVIDER" {
			for name := range strings.SplitSeq(s.Unit, ", ") {
				cfg.Payment.Provider = name
				providers[fmt.Sprintf("%T", must.Get(NewProvider(cfg))(t))] = true
			}
			require.Len(t, providers, strings.Count(s.Unit, ", ")+1)
		}
	}
	require.NotEmpty(t, providers)
	cfg.Payment.Provider = "another"
	_, err := NewProvider(cfg)
	require.ErrorContains(t, err, "has no case in app.NewProvider")
}
