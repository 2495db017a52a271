package app

import (
	"flag"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/config"
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

func TestStart_HelpHasTheEnvironmentOnce(t *testing.T) {
	for _, p := range []config.Program{config.API, config.Consumer, config.Standalone} {
		var out strings.Builder
		_, _, err := Start(p, string(p), nil, []string{"-help"}, nil, &out, &out)
		require.ErrorIs(t, err, flag.ErrHelp)
		require.Equal(t, 1, strings.Count(out.String(), "Environment:"))
	}
}

// TestStart_ReportsAllProblemsTogether checks settings that a part reads after the start, such as
// the names of files, beside one that does not parse.
func TestStart_ReportsAllProblemsTogether(t *testing.T) {
	environ := []string{
		"SECKILL_PAYMENT_TIMEOUT=soon", "SECKILL_SHOP_NAME=" + strings.Repeat("x", 41),
		"SECKILL_SHOP_LOGO=none.png", "SECKILL_RATELIMIT_FILE=none.yaml",
		"SECKILL_WEBHOOK_ALLOW=a b", "SECKILL_OIDC_ISSUER=http://login.example",
		"SECKILL_OIDC_AUDIENCE=shop",
	}
	var out, trouble strings.Builder
	_, _, err := Start(config.Standalone, "standalone", nil, nil, environ, &out, &trouble)
	require.Error(t, err)
	for _, setting := range []string{
		"SECKILL_PAYMENT_TIMEOUT", "SECKILL_SHOP_NAME", "SECKILL_SHOP_LOGO",
		"SECKILL_RATELIMIT_FILE", "SECKILL_WEBHOOK_ALLOW", "SECKILL_OIDC_ISSUER",
	} {
		require.Equal(t, 1, strings.Count(err.Error(), setting+":")+
			strings.Count(err.Error(), setting+" ("), "%s in %v", setting, err)
	}
}
