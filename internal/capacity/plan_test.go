package capacity

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func sale() Sale {
	return Sale{
		Buyers: 1000, Units: 100, PerBuyer: 1, Over: 10 * time.Second, Permits: 1000, Polls: 3,
		Waits: 1, Queries: 2, Streams: 0.5, Peak: 2, CallSize: 10, BatchSize: 50, Cores: 4,
		Use: 0.5,
	}
}

func TestMake_MultipliesCountsByCosts(t *testing.T) {
	c, err := BuiltIn()
	require.NoError(t, err)
	p, err := Make(sale(), c)
	require.NoError(t, err)
	rows := map[string]Row{}
	for _, r := range p.Rows {
		rows[r.Part+" "+r.Work] = r
		require.InDelta(t, r.Count*r.Micros/1e6, r.Seconds, 1e-9, r.Work)
	}
	require.EqualValues(t, 3000, rows["API GET /sales/{goodsId}"].Count)
	require.EqualValues(t, 600, rows["API GET /sales/{goodsId}"].Peak)
	require.EqualValues(t, 900, rows["API POST /randomPath: sold out"].Count)
	require.EqualValues(t, 100, rows["API POST /{path}/decrStock"].Count)
	require.EqualValues(t, 50, rows["API GET /orders/{orderSn}/events"].Count)
	require.EqualValues(t, 10, rows["RabbitMQ messages"].Count)
	require.EqualValues(t, 2, rows["MySQL transactions"].Count)
	require.Len(t, p.Parts, 5)
}

func TestMake_PermitsBoundTheRateOfOrders(t *testing.T) {
	c, err := BuiltIn()
	require.NoError(t, err)
	s := sale()
	s.Permits, s.Peak = 1, 1
	p, err := Make(s, c)
	require.NoError(t, err)
	require.EqualValues(t, 1, p.Rows[4].Peak, "100 orders at one permit per second")
}

func TestMake_ASecondHasAtMostAllRequests(t *testing.T) {
	c, err := BuiltIn()
	require.NoError(t, err)
	s := sale()
	s.Over = time.Millisecond
	p, err := Make(s, c)
	require.NoError(t, err)
	for _, r := range p.Rows {
		require.LessOrEqual(t, r.Peak, r.Count, r.Work)
	}
}

// TestMake_RefusesPlansBeyondAllBounds checks fields whose plan had a negative number of nodes, or
// was no JSON.
func TestMake_RefusesPlansBeyondAllBounds(t *testing.T) {
	c, err := BuiltIn()
	require.NoError(t, err)
	for name, change := range map[string]func(*Sale){
		"buyers": func(s *Sale) { s.Buyers = 1e18 }, "cores": func(s *Sale) { s.Cores = 1e-300 },
		"use": func(s *Sale) { s.Use = 1e-300 }, "polls": func(s *Sale) { s.Polls = 1e308 },
		"per buyer": func(s *Sale) { s.PerBuyer = 1e-300; s.Buyers = 1e300 },
		"peak":      func(s *Sale) { s.Peak = 0.5 },
		"call size": func(s *Sale) { s.CallSize = 1e-320 },
		"batch":     func(s *Sale) { s.BatchSize = 0.5 },
	} {
		s := sale()
		change(&s)
		_, err := Make(s, c)
		require.Error(t, err, name)
	}
}

func TestMake_NamesFieldsOutOfRange(t *testing.T) {
	_, err := Make(Sale{Streams: -1}, Calibration{})
	require.ErrorContains(t, err, "buyers must be")
	require.ErrorContains(t, err, "streams must be")
}

func TestText_ShowsEveryPart(t *testing.T) {
	c, err := BuiltIn()
	require.NoError(t, err)
	p, err := Make(sale(), c)
	require.NoError(t, err)
	var text strings.Builder
	require.NoError(t, p.Text(&text))
	for _, part := range p.Parts {
		require.Contains(t, text.String(), "\n"+part.Part+" ")
	}
	require.Equal(t, "1,230,000", digits(1_234_567))
	require.Equal(t, "1,000", digits(999.7))
}

func TestMake_RefusesMissingCosts(t *testing.T) {
	c, err := ParseCalibration([]byte(`{}`))
	require.NoError(t, err)
	_, err = Make(sale(), c)
	require.ErrorContains(t, err, "has no cost of")
	_, err = ParseCalibration([]byte(`{`))
	require.Error(t, err)
}
