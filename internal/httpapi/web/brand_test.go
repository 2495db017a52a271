package web

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

// TestBrand_IsOnThePage checks the name in the title and the head, and the logo as an asset.
func TestBrand_IsOnThePage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "logo.SVG")
	require.NoError(t, os.WriteFile(file, []byte("<svg/>"), 0o600))
	s := must.Get(New("CNY", must.Get(NewBrand(" Ann & Sons ", file))(t)))(t)
	body := string(must.Get(s.Render(Page{Name: "session", Lang: English, Data: SignIn{}}))(t))
	require.Contains(t, body, "<title>Sign in · Ann &amp; Sons</title>")
	require.Contains(t, body, "<span>Ann &amp; Sons</span>")
	require.Contains(t, body, `<img src="/assets/`+s.assets.version+`/logo.svg" alt="">`)
	logo, found := s.Asset(s.assets.version, "logo.svg")
	require.True(t, found)
	require.Equal(t, "image/svg+xml", logo.Type)

	plain := must.Get(New("CNY", Brand{}))(t)
	require.NotEqual(t, plain.assets.version, s.assets.version, "another logo has another address")
	body = string(must.Get(plain.Render(Page{Name: "stop", Lang: Chinese, Data: "missing"}))(t))
	require.Contains(t, body, "<title>没有这个页面 · 限时抢购</title>")
}

func TestBrand_NamesTheWrongSetting(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "logo.png")
	require.NoError(t, os.WriteFile(large, make([]byte, maxLogo+1), 0o600))
	for _, c := range []struct{ name, file, want string }{
		{strings.Repeat("a", 41), "", "SECKILL_SHOP_NAME: has more than 40 characters"},
		{"", large, "SECKILL_SHOP_LOGO: " + large + " has 8193 bytes"},
		{"", "logo.gif", "SECKILL_SHOP_LOGO: logo.gif is no .svg"},
		{"", filepath.Join(dir, "none.png"), "no such file"},
	} {
		_, err := NewBrand(c.name, c.file)
		require.ErrorContains(t, err, c.want)
	}
}
