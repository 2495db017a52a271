package params

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
)

// FuzzFields_Read checks two promises of the decoders. An error names its field in valid UTF-8. An
// accepted field is allowed, valid UTF-8 and unique.
func FuzzFields_Read(f *testing.F) {
	types := []string{"", "application/json", "application/x-www-form-urlencoded"}
	allowed := []string{"title", "price", "rate.burst", "rate.wait"}
	f.Add("", uint8(1), `{"title":"x","price":1,"rate":{"burst":0.5}}`)
	f.Add("title=a%20b&price=1", uint8(2), "rate.wait=5")
	f.Add("a=%ff;b", uint8(0), "{\"title\":\"\xff\"}")
	f.Add("", uint8(0), `{"rate":{"rate":{}},"rate":1}`)
	f.Fuzz(func(t *testing.T, query string, contentType uint8, body string) {
		r := httptest.NewRequest(http.MethodPost, "/x", strings.NewReader(body))
		r.URL.RawQuery = query
		if media := types[int(contentType)%len(types)]; media != "" {
			r.Header.Set("Content-Type", media)
		}
		p := New(allowed, nil)
		err := p.Read(httptest.NewRecorder(), r)
		if err == nil {
			seen := map[string]bool{}
			for _, v := range p.fields {
				require.False(t, seen[v.name], v.name)
				require.True(t, slices.Contains(allowed, v.name), v.name)
				require.True(t, utf8.ValidString(v.text))
				seen[v.name] = true
			}
			Optional(p, "title", p.Text)
			Optional(p, "price", p.Int)
			p.FloatOr("rate.burst", 1)
			p.IntOr("rate.wait", 1, 0, 9)
			err = p.Err()
		}
		if err != nil {
			e, ok := err.(*apierror.Error) //nolint:errorlint // Read promises this exact type
			require.True(t, ok, "%v", err)
			require.Equal(t, apierror.BadRequest, e.Reason)
			require.NotEmpty(t, e.Problems[0].Field)
			require.True(t, utf8.ValidString(e.Problems[0].Field))
		}
	})
}

// TestRead_ReportsUnknownFieldsWithTheOthers checks that unknown fields of query and body come with
// the problems of the known ones, and that an unknown value is skipped whole.
func TestRead_ReportsUnknownFieldsWithTheOthers(t *testing.T) {
	named := func(err error) (names []string) {
		e, ok := errors.AsType[*apierror.Error](err)
		require.True(t, ok, "%v", err)
		for _, p := range e.Problems {
			names = append(names, p.Field)
		}
		return names
	}
	read := func(query, body string) (*Fields, error) {
		r := httptest.NewRequest(http.MethodPost, "/x?"+query, strings.NewReader(body))
		p := New([]string{"title", "price", "rate.burst"}, nil)
		return p, p.Read(httptest.NewRecorder(), r)
	}
	p, err := read("q=1", `{"x":{"y":[1,{}]},"title":7,"rate":{"z":1,"a.b":2,"burst":"u"}}`)
	require.NoError(t, err)
	p.Text("title")
	p.Int("price")
	p.FloatOr("rate.burst", 1)
	require.Equal(t, []string{"q", "x", "rate.z", "rate.a.b", "title", "price", "rate.burst"},
		named(p.Err()))
	_, err = read("", `{"x":1,"title":{}}`)
	require.Equal(t, []string{"x", "title"}, named(err))
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf("n%d=1", i))
	}
	_, err = read(strings.Join(many, "&"), "")
	require.Len(t, named(err), maxUnknown)
}

// TestRead_BoundsTheFieldsOfACall sends an object of any names as JSON and as a form. Each field is
// compared with all others.
func TestRead_BoundsTheFieldsOfACall(t *testing.T) {
	read := func(media, body string) error {
		r := httptest.NewRequest(http.MethodPost, "/x", strings.NewReader(body))
		r.Header.Set("Content-Type", media)
		return New([]string{"pairs.*"}, nil).Read(httptest.NewRecorder(), r)
	}
	for n, allowed := range map[int]bool{maxFields: true, maxFields + 1: false} {
		var members, pairs []string
		for i := range n {
			members = append(members, fmt.Sprintf(`"n%d":""`, i))
			pairs = append(pairs, fmt.Sprintf("pairs.n%d=", i))
		}
		for media, body := range map[string]string{
			"application/json":                  `{"pairs":{` + strings.Join(members, ",") + `}}`,
			"application/x-www-form-urlencoded": strings.Join(pairs, "&"),
		} {
			require.Equal(t, allowed, read(media, body) == nil, "%d fields as %s", n, media)
		}
	}
}

// FuzzDecimal checks that only the canonical form of an integer is accepted.
func FuzzDecimal(f *testing.F) {
	for _, s := range []string{"0", "-1", "9223372036854775807", "+1", "01", "1_0", "-0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, ok := Decimal(s); ok {
			require.Regexp(t, `^(0|-?[1-9][0-9]*)$`, s)
			require.Equal(t, s, strconv.FormatInt(n, 10))
		}
	})
}
