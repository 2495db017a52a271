package web

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

func TestMoneyFormat_FollowsTheCurrency(t *testing.T) {
	for _, c := range []struct {
		code   string
		amount int64
		want   string
	}{
		{"CNY", 199900, "¥1,999.00"},
		{"CNY", 5, "¥0.05"},
		{"CNY", 0, "¥0.00"},
		{"EUR", 1_000_000_000_000, "€10,000,000,000.00"},
		{"JPY", 1999, "¥1,999"},
		{"VES", 1999, "VES19.99"}, // x/text does not have it
	} {
		require.Equal(t, c.want, must.Get(moneyOf(c.code))(t).Format(c.amount), c.code)
	}
	_, err := New("nothing", Brand{})
	require.ErrorContains(t, err, `currency "nothing"`)
}

func TestGroupSales_OrdersEachGroup(t *testing.T) {
	at := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	s := groupSales([]Sale{
		Sale{Title: "late", Phase: "upcoming"}.WithTimes(at.Add(time.Hour), at),
		Sale{Title: "gone", Phase: "sold_out"}.WithTimes(at, at),
		Sale{Title: "over", Phase: "ended"}.WithTimes(at, at),
		Sale{Title: "on", Phase: "ongoing"}.WithTimes(at, at),
		Sale{Title: "next", Phase: "upcoming"}.WithTimes(at.Add(time.Minute), at),
	})
	titles := func(sales []Sale) (all []string) {
		for _, s := range sales {
			all = append(all, s.Title)
		}
		return all
	}
	require.Equal(t, []string{"on", "gone"}, titles(s.Now))
	require.Equal(t, []string{"next", "late"}, titles(s.Soon))
	require.Equal(t, []string{"over"}, titles(s.Over))
}

func TestSaleShare_IsNeverZeroWhileUnitsAreLeft(t *testing.T) {
	require.EqualValues(t, 1, Sale{Available: 1, Total: 1_000_000}.Share())
	require.True(t, Sale{Available: 1, Total: 1_000_000}.Few())
	require.EqualValues(t, 0, Sale{Available: 0, Total: 10}.Share())
	require.EqualValues(t, 100, Sale{Available: 10, Total: 10}.Share())
	require.EqualValues(t, 0, Sale{}.Share())
}

// TestWords_OfAGroupHideNoOthers checks that no text has the name of another.
func TestWords_OfAGroupHideNoOthers(t *testing.T) {
	words := must.Get(loadWords("words"))(t)
	for _, folder := range []string{"words/console", "words/draw"} {
		for l, w := range must.Get(loadWords(folder))(t) {
			for name, text := range w {
				require.NotContains(t, words[l], name)
				words[l][name] = text
			}
		}
	}
}

// TestStopPage_OffersSigningInWhereItHelps checks that a visitor who has signed in is asked to sign
// in only where another account may open the page.
func TestStopPage_OffersSigningInWhereItHelps(t *testing.T) {
	s := must.Get(New("CNY", Brand{}))(t)
	for _, c := range []struct {
		why, user string
		buttons   int
	}{{"missing", "", 1}, {"missing", "7", 0}, {"forbidden", "7", 1}, {"signin", "", 1}} {
		page := Page{Name: "stop", Lang: English, Data: c.why, User: User{ID: c.user}}
		body := string(must.Get(s.Render(page))(t))
		_, main, _ := strings.Cut(body, "<h1>")
		require.Equal(t, c.buttons, strings.Count(main, `href="/session"`), "%+v", c)
	}
}

// TestPageTitle_NamesWhatThePageShows checks that the tabs of two orders have different titles.
func TestPageTitle_NamesWhatThePageShows(t *testing.T) {
	s := must.Get(New("CNY", Brand{}))(t)
	const sn = "1EHPB7qRzSW21NiMXIuidLmrO7yYrHNO5CU"
	ann := User{ID: "7", Role: "buyer", Name: "Ann"}
	for title, page := range map[string]Page{
		"Order YrHN-O5CU · Console": {Name: "order", Data: sn},
		"订单 YrHN-O5CU · 商家后台":       {Name: "order", Data: sn, Lang: Chinese},
		"Order YrHN-O5CU":           {Name: "purchase", Data: Purchase{OrderSn: sn}},
		"Sign in":                   {Name: "session"},
		"You are Ann":               {Name: "session", User: ann},
	} {
		page.Lang, page.site = cmp.Or(page.Lang, English), s
		require.Equal(t, title+" · "+page.Brand(), page.Title())
	}
}

// TestWords_OfTheConsoleAndTheShop holds the words that users asked for.
func TestWords_OfTheConsoleAndTheShop(t *testing.T) {
	s := must.Get(New("CNY", Brand{}))(t)
	for name, want := range map[string]string{
		"do.expose": "Publish", "do.close": "End sale", "do.rate": "Admission rate",
		"ledger.balanced": "Stock ledger: in balance", "live.backlog": "Orders processing",
		"deadLetters.none": "No failed orders.", "say.purchase": "Reserving your item…",
		"orders.left": "Payment due in {time}", "status.created": "Awaiting payment",
		"status.failed": "Failed", "session.guests": "Demo shop: choose an account.",
	} {
		require.Equal(t, want, s.Words(English)[name])
		require.NotEmpty(t, s.Words(Chinese)[name])
		require.NotEqual(t, want, s.Words(Chinese)[name])
	}
}

// plural is a number followed by an English plural, which is wrong for 1: "1 attempts".
var plural = regexp.MustCompile(`\{(n|found|size|all|most)\} (are\b|[a-z]{3,}s\b)`)

// TestWords_FitEveryNumber checks that no text has a noun or a verb whose form depends on a number.
// Chinese has no such forms, but each of its texts must show the same values.
func TestWords_FitEveryNumber(t *testing.T) {
	s := must.Get(New("CNY", Brand{}))(t)
	value := regexp.MustCompile(`\{\w+\}`)
	values := func(text string) []string {
		return slices.Sorted(slices.Values(value.FindAllString(text, -1)))
	}
	for name, text := range s.Words(English) {
		require.NotRegexp(t, plural, text, name)
		require.Equal(t, values(text), values(s.Words(Chinese)[name]), name)
	}
	require.Regexp(t, plural, "{n} attempts, the last {when}")
}

func TestWordsFormat_ShowsMissingNames(t *testing.T) {
	require.Equal(t, "no.such", Words{}.format("no.such"))
	require.Equal(t, "3 of {y}", Words{"a": "{x} of {y}"}.format("a", "x", 3))
}
