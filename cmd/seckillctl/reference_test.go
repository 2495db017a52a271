package main

import (
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

func TestReference_HasEveryCommand(t *testing.T) {
	text := string(must.Get(os.ReadFile("../../docs/reference/cli.md"))(t))
	parser := must.Get(kong.New(&commands{}, kong.Vars{"version": ""}))(t)
	leaves := parser.Model.Leaves(true)
	require.NotEmpty(t, leaves)
	for _, command := range leaves {
		path := strings.TrimPrefix(command.FullPath(), parser.Model.Name+" ")
		require.Regexp(t, "(?m)^\\| `"+path+"[ `]", text)
	}
}
