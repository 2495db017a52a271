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
