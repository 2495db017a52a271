package httpapi

import (
	"io/fs"
	"maps"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/apikey"
	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/httpapi/web"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/testing/must"
)

func site(t *testing.T) *web.Site {
	t.Helper()
	return must.Get(web.New("CNY", web.Brand{}))(t)
}

// TestPageWords_CoverTheAPI checks that every language has a text for each reason, status, phase
// and role of the API.
func TestPageWords_CoverTheAPI(t *testing.T) {
	isSuccess := func(r apierror.Reason) bool { return statusOf(r) < http.StatusBadRequest }
	reasons := slices.DeleteFunc(constants[apierror.Reason](t), isSuccess)
	roles := []seckill.Role{seckill.Buyer, seckill.Merchant, seckill.Operator}
	names := slices.Concat(
		texts("reason.", reasons), texts("status.", order.Statuses()),
		texts("failure.", order.FailureReasons()),
		texts("deadLetter.", order.FailureReasons()), texts("phase.", constants[seckill.Phase](t)),
		texts("card.", constants[seckill.Phase](t)), texts("eventType.", event.Types()),
		texts("keyScope.", apikey.Scopes()), texts("action.", salechange.Actions()),
		texts("audit.is.", constants[seckill.Status](t)),
		texts("audit.is.", constants[seckill.Admission](t)),
		texts("audit.is.", constants[seckill.AccessCode](t)),
		texts("role.", roles), texts("session.as.", roles),
	)
	for field := range reflect.TypeFor[salechange.Change]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "rate" { // the audit log has the fields of a rate
			names = append(names, "value."+name)
		}
	}
	names[slices.Index(names, "card."+string(seckill.Ongoing))] = "card.buy"
	s := site(t)
	for _, lang := range web.Langs() {
		for _, name := range names {
			require.NotEmpty(t, s.Words(lang)[name], "%s has no words for %s", lang, name)
		}
	}
}

// texts returns the names of a family's texts.
func texts[T ~string](family string, values []T) (names []string) {
	for _, v := range values {
		names = append(names, family+string(v))
	}
	return names
}

// TestPageWords_AreTheSameInEveryLanguage checks that all languages have the same texts with the
// same parameters.
func TestPageWords_AreTheSameInEveryLanguage(t *testing.T) {
	s := site(t)
	filled := regexp.MustCompile(`\{\w+\}`)
	first := s.Words(web.English)
	for _, lang := range web.Langs() {
		require.ElementsMatch(t, slices.Collect(maps.Keys(first)),
			slices.Collect(maps.Keys(s.Words(lang))), lang)
		for name, sentence := range s.Words(lang) {
			require.ElementsMatch(t, filled.FindAllString(first[name], -1),
				filled.FindAllString(sentence, -1), "%s: %s", lang, name)
		}
	}
}

// TestPageWords_AreAllUsed checks that every text that a page or script requests exists. It also
// checks that some page or script requests each existing text.
func TestPageWords_AreAllUsed(t *testing.T) {
	var all strings.Builder
	files := os.DirFS("web")
	require.NoError(t, fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && (strings.HasSuffix(path,
			".html") || strings.HasSuffix(path, ".js") || strings.HasSuffix(path, ".go")) {
			text, err := os.ReadFile("web/" + path)
			all.Write(text)
			return err
		}
		return err
	}))
	have := site(t).Words(web.English)
	uses := regexp.MustCompile(`(?:\bt\(|\.T )['"]([a-z]+(?:\.[\w]+)+)['"]`)
	for _, asked := range uses.FindAllStringSubmatch(all.String(), -1) {
		require.Contains(t, have, asked[1], "a page or script requests this text")
	}
	for name := range have {
		whole := strings.Contains(all.String(),
			`"`+name+`"`) || strings.Contains(all.String(), "'"+name+"'")
		parts := strings.Split(name, ".")
		family := false
		for i := 1; i < len(parts); i++ {
			prefix := strings.Join(parts[:i], ".")
			family = family || strings.Contains(all.String(),
				`"`+prefix+`.%s`) || strings.Contains(all.String(),
				`"`+prefix+`."`) || strings.Contains(all.String(),
				"`"+prefix+".${") || strings.Contains(all.String(), "oneOf('"+prefix+"'")
		}
		require.True(t, whole || family, "no page and no script uses %s", name)
	}
}
