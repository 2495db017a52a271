package config

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Program names a program. It selects the settings that Load reads, and their defaults.
type Program string

// The programs that read settings from the environment.
const (
	API        Program = "api"
	Consumer   Program = "consumer"
	Standalone Program = "standalone"
	RateLimit  Program = "ratelimitd"
)

// Config holds all settings. A setting that a program does not read has its default.
//
// Tags: env is the name. envDefault is the default, and envDefault.consumer one program's own. in
// lists the programs that read it. validate holds the validator's rules. unit and help are for
// people.
type Config struct {
	HTTP    HTTP
	Redis   Redis
	MySQL   MySQL
	AMQP    AMQP
	Auth    Auth
	OIDC    OIDC
	Order   Order
	Payment Payment
	Limiter Limiter
	Webhook Webhook
	Process Process
	Trace   Trace
}

// HTTP holds the API's address, whom it trusts, and what its pages show.
type HTTP struct {
	Addr           string  `env:"SECKILL_HTTP_ADDR" envDefault:":8080" envDefault.standalone:"127.0.0.1:8080" envDefault.ratelimitd:"127.0.0.1:8082" in:"api standalone ratelimitd" unit:"host:port" validate:"addr" help:"address of the HTTP API; keep ratelimitd's private, because it authenticates nobody"`
	TrustedProxies Proxies `env:"SECKILL_TRUSTED_PROXIES" in:"api standalone" unit:"comma list of addresses or CIDRs" help:"trusted proxies: the API reads X-Forwarded-For only from them; none if empty"`
	CORSOrigins    Origins `env:"SECKILL_CORS_ORIGINS" in:"api standalone" unit:"comma list of origins" help:"origins of other sites whose pages may call the API, such as https://shop.example.org; none if empty. Their calls need a bearer token: the pages' session is not theirs"`
	Currency       string  `env:"SECKILL_CURRENCY" envDefault:"CNY" in:"api consumer standalone" unit:"ISO 4217 code" help:"currency of sales without one of their own, on the pages and at the payment provider; amounts are in its smallest unit; the same on every node; a change applies to their past orders too"`
	BrandName      string  `env:"SECKILL_SHOP_NAME" in:"api standalone" unit:"name" help:"name of the shop on the pages, at most 40 characters; if empty, Flash Sale, or its translation; the same on every node"`
	BrandLogo      string  `env:"SECKILL_SHOP_LOGO" in:"api standalone" unit:"path" help:"logo of the shop on the pages: a file .svg, .png, .jpg or .webp of at most 8 KiB; a flash if empty; the same on every node"`
}

// Redis holds the connection to Redis, which keeps the stock of open sales.
type Redis struct {
	Addrs          []string      `env:"SECKILL_REDIS_ADDRS" envDefault:"127.0.0.1:6379" in:"api consumer ratelimitd" unit:"comma list of host:port" validate:"dive,addr" help:"addresses of Redis; several belong to a Redis Cluster, or to sentinels if SECKILL_REDIS_SENTINEL_MASTER is set"`
	Username       string        `env:"SECKILL_REDIS_USERNAME" in:"api consumer ratelimitd" unit:"name" help:"Redis ACL user; the default user if empty; it needs +info"`
	Password       Secret        `env:"SECKILL_REDIS_PASSWORD" in:"api consumer ratelimitd" unit:"password" help:"Redis' password; none if empty"`
	TLS            bool          `env:"SECKILL_REDIS_TLS" envDefault:"false" in:"api consumer ratelimitd" unit:"true, false" help:"use TLS to Redis; this machine must trust its certificate (SSL_CERT_FILE names other trusted certificates)"`
	SentinelMaster string        `env:"SECKILL_REDIS_SENTINEL_MASTER" in:"api consumer ratelimitd" unit:"name" help:"name of the master that the sentinels at SECKILL_REDIS_ADDRS monitor; empty without Sentinel"`
	SentinelSecret Secret        `env:"SECKILL_REDIS_SENTINEL_PASSWORD" in:"api consumer ratelimitd" unit:"password" help:"password of the sentinels themselves; none if empty"`
	WaitReplicas   int           `env:"SECKILL_REDIS_WAIT_REPLICAS" envDefault:"0" in:"api consumer" unit:"replicas, 0 = off" validate:"min=0,max=16" help:"replicas that must have a reservation before the API confirms it, or a late order's units before it is written (WAIT), so that a failover loses none; the same on every node"`
	WaitTimeout    time.Duration `env:"SECKILL_REDIS_WAIT_TIMEOUT" envDefault:"500ms" in:"api consumer" unit:"duration" validate:"min=1ms,max=1500ms" help:"longest wait for those replicas; then the answer is 503, the buyer may repeat the same path, and a late order stays parked; the same on every node"`
	GateLifetime   time.Duration `env:"SECKILL_GATE_LIFETIME" envDefault:"5s" in:"api consumer" unit:"duration" validate:"min=3s,max=1m" help:"with Sentinel or a cluster: for how long a sale goes on without a renewal that MySQL permits; a failover takes that much longer, and a sale pauses after MySQL has been away for that long; the same on every node"`
}

// EffectiveGateLifetime returns for how long a gate is open without a renewal. It is 0, which means
// without an end, where Redis has no failover: one address and no Sentinel.
func (r Redis) EffectiveGateLifetime() time.Duration {
	if r.SentinelMaster == "" && len(r.Addrs) <= 1 {
		return 0
	}
	return r.GateLifetime
}

// ReplicaTimeout returns for how long a script may wait for replicas: WaitTimeout, or 0 if
// WaitReplicas is 0.
func (r Redis) ReplicaTimeout() time.Duration {
	if r.WaitReplicas == 0 {
		return 0
	}
	return r.WaitTimeout
}

// MySQL holds the connections to the database, which keeps sales and orders.
type MySQL struct {
	DSN Secret `env:"SECKILL_MYSQL_DSN" envDefault:"seckill:seckill@tcp(127.0.0.1:3306)/seckill" in:"api consumer" unit:"go-sql-driver DSN" help:"MySQL or MariaDB; times are stored in UTC; of several group members (h1:3306,h2:3306) the program uses the writable one"`
	// ReadDSN serves lists for people. A consumer reads nothing from a replica, because it repairs.
	ReadDSN Secret `env:"SECKILL_MYSQL_READ_DSN" in:"api" unit:"go-sql-driver DSN" help:"replicas for merchants' lists of orders and figures and the public list of sales, which may then lag; the primary if empty or unreachable"`
}

// AMQP holds the connection to RabbitMQ, which transports orders from Redis to MySQL.
type AMQP struct {
	URLs           Secret        `env:"SECKILL_AMQP_URL" envDefault:"amqp://guest:guest@127.0.0.1:5672/" in:"api consumer" unit:"comma list of amqp:// URLs" help:"RabbitMQ's nodes, tried in turn"`
	PublishTimeout time.Duration `env:"SECKILL_PUBLISH_TIMEOUT" envDefault:"1s" in:"api consumer" unit:"duration" validate:"min=10ms,max=10s" help:"longest wait for RabbitMQ's confirm of a message; the relay sends it again later"`
}

// Auth holds the secrets.
type Auth struct {
	JWTSecret       Secret `env:"SECKILL_JWT_SECRET" in:"api consumer standalone" unit:"comma list, each at least 32 bytes" validate:"omitempty,ring=32" help:"secrets of tokens (HS256) and of the pages' sessions: the first signs, all verify; standalone generates one if it is empty, a consumer needs it or SECKILL_ORDER_SECRET, an API needs it, or SECKILL_OIDC_ISSUER and SECKILL_ORDER_SECRET"`
	OrderSecret     Secret `env:"SECKILL_ORDER_SECRET" in:"api consumer standalone" unit:"at least 32 bytes" validate:"omitempty,bytes=32" help:"secret that signs random paths and order numbers, the same on every node; derived from the first JWT secret if empty"`
	OldOrderSecrets Secret `env:"SECKILL_OLD_ORDER_SECRETS" in:"api consumer standalone" unit:"comma list, each at least 32 bytes" validate:"omitempty,ring=32" help:"former and coming order secrets, which verify only: add a new one here on every node before it becomes SECKILL_ORDER_SECRET"`
	PhoneKeys       Secret `env:"SECKILL_PHONE_KEYS" in:"api consumer standalone" unit:"comma list of id:key, 32 bytes in base64" help:"keys that seal phone numbers and the secrets of webhooks, the same on every node; the first seals, all open; if empty, standalone generates one; key 0 is derived from each order secret and always opens"`
	PaymentSecret   Secret `env:"SECKILL_PAYMENT_SECRET" in:"api standalone" unit:"at least 32 bytes" validate:"omitempty,bytes=32" help:"secret that signs the payment provider's callbacks (HMAC-SHA256); standalone generates one, without one an API refuses callbacks"`
}

// OIDC holds the OpenID Connect issuer whose users may call the API and sign in on the pages.
type OIDC struct {
	Issuer       string        `env:"SECKILL_OIDC_ISSUER" in:"api standalone" unit:"https URL" validate:"omitempty,http_url" help:"OpenID Connect issuer whose tokens are valid (RS256, ES256, EdDSA) and at which users of the pages sign in; http only for localhost; none if empty"`
	Audience     string        `env:"SECKILL_OIDC_AUDIENCE" in:"api standalone" unit:"name" help:"audience that the issuer's tokens must name; required with SECKILL_OIDC_ISSUER"`
	RoleClaim    string        `env:"SECKILL_OIDC_ROLE_CLAIM" envDefault:"role" in:"api standalone" unit:"name or dotted path" help:"claim with the role (merchant, operator) or a list of roles, such as realm_access.roles; a user without one is a buyer"`
	ClientID     string        `env:"SECKILL_OIDC_CLIENT_ID" in:"api standalone" unit:"name" help:"the pages' client at the issuer, whose redirect URI is SECKILL_PUBLIC_URL + /session/callback; the audience if empty"`
	ClientSecret Secret        `env:"SECKILL_OIDC_CLIENT_SECRET" in:"api standalone" unit:"secret" help:"that client's secret; without one it is a public client, which PKCE protects"`
	Session      time.Duration `env:"SECKILL_OIDC_SESSION" envDefault:"1h" in:"api standalone" unit:"duration" validate:"min=1m,max=24h" help:"how long a sign-in on the pages lasts; then the issuer is asked again"`
}

// check returns the problem of settings of an issuer that lack another one. A program that reads
// none of them has no problem.
func (o OIDC) check() []error {
	missing, with := "ISSUER", ""
	switch {
	case o.Issuer != "" && o.Audience == "":
		missing, with = "AUDIENCE", "ISSUER"
	case o.Issuer != "":
	case o.Audience != "":
		with = "AUDIENCE"
	case o.ClientID != "":
		with = "CLIENT_ID"
	case o.ClientSecret != "":
		with = "CLIENT_SECRET"
	}
	if with == "" {
		return nil
	}
	return []error{fmt.Errorf("SECKILL_OIDC_%s: is required with SECKILL_OIDC_%s", missing, with)}
}

// checkTokens returns what an API lacks to verify any token and to sign sessions.
func (c Config) checkTokens(p Program) []error {
	switch {
	case p != API || c.Auth.JWTSecret != "":
		return nil
	case c.OIDC.Issuer == "":
		return []error{errors.New("SECKILL_JWT_SECRET: is required without SECKILL_OIDC_ISSUER")}
	case c.Auth.OrderSecret == "":
		return []error{errors.New("SECKILL_ORDER_SECRET: is required with SECKILL_OIDC_ISSUER " +
			"if there is no SECKILL_JWT_SECRET")}
	}
	return nil
}

// Order holds the settings of writing orders and of their expiry.
type Order struct {
	PaymentTimeout   time.Duration `env:"SECKILL_PAYMENT_TIMEOUT" envDefault:"15m" in:"api consumer standalone" unit:"duration" validate:"min=1s,max=8760h" help:"time to pay after an order was written; then it expires and its units go back on sale"`
	Shards           int           `env:"SECKILL_ORDER_SHARDS" envDefault:"4" in:"api consumer" unit:"queues" validate:"min=1,max=256" help:"order queues, the same on every node; each has one active consumer"`
	BatchSize        int           `env:"SECKILL_BATCH_SIZE" envDefault:"500" in:"consumer standalone" unit:"orders" validate:"min=1,max=500" help:"orders from which a transaction takes no further message; a message has up to 256"`
	BatchLinger      time.Duration `env:"SECKILL_BATCH_LINGER" envDefault:"50ms" envDefault.standalone:"2ms" in:"consumer standalone" unit:"duration" validate:"min=0s,max=1s" help:"least time from the end of a batch to the next one, unless that is full; an order that comes later is written at once"`
	AdmissionTimeout time.Duration `env:"SECKILL_ADMISSION_TIMEOUT" envDefault:"30s" in:"consumer standalone" unit:"duration" validate:"min=1s,max=10m" help:"in a waiting room, how long a buyer who is called may take to buy; then the unit is offered to the next in line"`
	MaxBacklogAge    time.Duration `env:"SECKILL_MAX_BACKLOG_AGE" envDefault:"0s" in:"api standalone" unit:"duration, 0 = off" validate:"min=0s,max=24h" help:"purchases get 503 while reservations wait longer than this for MySQL; one that newer ones overtook does not count"`
}

// Payment holds the payment provider.
type Payment struct {
	Provider      string `env:"SECKILL_PAYMENT_PROVIDER" envDefault:"test" in:"api consumer standalone" unit:"test, stripe" validate:"oneof=test stripe" help:"payment provider, the same on every node; test takes no money and confirms at once"`
	StripeKey     Secret `env:"SECKILL_STRIPE_SECRET_KEY" in:"api consumer standalone" unit:"key" help:"Stripe's secret or restricted key; required with SECKILL_PAYMENT_PROVIDER=stripe"`
	WebhookSecret Secret `env:"SECKILL_STRIPE_WEBHOOK_SECRET" in:"api standalone" unit:"secret" help:"signing secret of Stripe's webhook endpoint (whsec_...); required with SECKILL_PAYMENT_PROVIDER=stripe"`
	StripeURL     string `env:"SECKILL_STRIPE_API_URL" envDefault:"https://api.stripe.com" in:"api consumer standalone" unit:"URL" validate:"http_url" help:"Stripe's API; another one only for tests"`
	PublicURL     string `env:"SECKILL_PUBLIC_URL" in:"api consumer standalone" unit:"URL" validate:"omitempty,http_url" help:"URL at which buyers reach the pages, such as https://sale.example; a provider's page returns them there; required with SECKILL_PAYMENT_PROVIDER=stripe, and for signing in on the pages at SECKILL_OIDC_ISSUER; the same on every node"`
}

// check returns what a program's provider lacks.
func (p Payment) check(program Program) (problems []error) {
	if p.Provider != "stripe" || program == RateLimit {
		return nil
	}
	const name = "%s: is required with SECKILL_PAYMENT_PROVIDER=stripe"
	if p.StripeKey == "" {
		problems = append(problems, fmt.Errorf(name, "SECKILL_STRIPE_SECRET_KEY"))
	}
	if p.WebhookSecret == "" && program != Consumer {
		problems = append(problems, fmt.Errorf(name, "SECKILL_STRIPE_WEBHOOK_SECRET"))
	}
	if p.PublicURL == "" {
		problems = append(problems, fmt.Errorf(name, "SECKILL_PUBLIC_URL"))
	}
	return problems
}

// Limiter names the file of the rate limiter's rules, and settings of ratelimitd.
type Limiter struct {
	GRPCAddr string        `env:"SECKILL_GRPC_ADDR" envDefault:"127.0.0.1:8081" in:"ratelimitd" unit:"host:port" validate:"addr" help:"address of Envoy's rate limit service; keep it private, because it authenticates nobody"`
	Timeout  time.Duration `env:"SECKILL_RATELIMIT_TIMEOUT" envDefault:"50ms" in:"ratelimitd" unit:"duration" validate:"min=1ms,max=1m" help:"longest time of one decision in Redis; then the rule's onError decides"`
	File     string        `env:"SECKILL_RATELIMIT_FILE" in:"api standalone ratelimitd" unit:"path" help:"rules of the rate limiter, YAML; if empty, the sales' own rates and the built-in rules"`
}

// Webhook holds what limits the webhooks of merchants.
type Webhook struct {
	Allow []string `env:"SECKILL_WEBHOOK_ALLOW" in:"api consumer standalone" unit:"comma list of hosts, addresses or CIDRs" help:"private hosts and networks that webhooks may be sent to; a URL may use http if its host is named, or is an address in a named network; without it only public addresses by https; the same on every node"`
}

// Process holds a program's logging, operations address and shutdown.
type Process struct {
	OpsAddr         string        `env:"SECKILL_OPS_ADDR" envDefault:"127.0.0.1:9090" envDefault.consumer:"127.0.0.1:9091" envDefault.ratelimitd:"127.0.0.1:9092" in:"api consumer standalone ratelimitd" unit:"host:port" validate:"addr" help:"address of /metrics, /livez, /readyz and /debug/pprof; keep it private; a port in use is a warning"`
	LogLevel        slog.Level    `env:"SECKILL_LOG_LEVEL" envDefault:"info" in:"api consumer standalone ratelimitd" unit:"debug, info, warn, error" help:"lowest level that is logged"`
	LogFormat       string        `env:"SECKILL_LOG_FORMAT" envDefault:"json" envDefault.standalone:"text" in:"api consumer standalone ratelimitd" unit:"json, text" validate:"oneof=json text" help:"format of log lines"`
	MemoryLimit     int           `env:"SECKILL_MEMORY_LIMIT" envDefault:"512" in:"api consumer standalone ratelimitd" unit:"MiB" validate:"min=64,max=1048576" help:"soft limit of Go's memory, stacks included, below the container's limit; the collector runs more often near it; GOMEMLIMIT overrides it"`
	ShutdownTimeout time.Duration `env:"SECKILL_SHUTDOWN_TIMEOUT" envDefault:"15s" in:"api consumer standalone ratelimitd" unit:"duration" validate:"min=100ms,max=10m" help:"longest time between SIGTERM and the exit"`
}

// Trace holds the address of the collector and the share of traced requests.
type Trace struct {
	Endpoint string `env:"SECKILL_OTLP_ENDPOINT" in:"api consumer" unit:"URL" validate:"omitempty,http_url" help:"OpenTelemetry collector that receives traces by OTLP over HTTP, such as http://collector:4318; if empty, OTEL_EXPORTER_OTLP_ENDPOINT; without both no request is traced"`
	OneIn    int    `env:"SECKILL_TRACE_ONE_IN" envDefault:"100" in:"api" unit:"requests" validate:"min=1,max=1000000" help:"one request in this many is traced"`
}

// Nodes returns the URLs of RabbitMQ's nodes, one by one.
func (a AMQP) Nodes() []string { return split(a.URLs.Reveal()) }
