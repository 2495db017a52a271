package accesscode

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
)

// memory is a Store in memory. It counts its calls and may fail.
type memory struct {
	mu     sync.Mutex
	owners map[Number]string
	calls  int
	err    error
}

func (m *memory) ClaimCodes(
	_ context.Context, _ int64, claims []Claim, _ time.Time,
) (owners []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	for _, c := range claims {
		if m.owners[c.Code] == "" {
			m.owners[c.Code] = c.BuyerID
		}
		owners = append(owners, m.owners[c.Code])
	}
	return owners, m.err
}

func viewOf(kind seckill.AccessCode) seckill.View {
	return seckill.View{Sale: seckill.Sale{GoodsID: goods, AccessCode: kind}, Now: noon}
}

func newService() (*Service, *memory) {
	m := &memory{owners: map[Number]string{}}
	return NewService(keys, m), m
}

// TestService_WithoutCodesDoesNothing checks that other sales cost no call.
func TestService_WithoutCodesDoesNothing(t *testing.T) {
	s, store := newService()
	for _, kind := range []seckill.AccessCode{"", seckill.NoCodes} {
		n := must.Get(s.Verify(viewOf(kind), "no code at all"))(t)
		require.NoError(t, s.Claim(t.Context(), viewOf(kind), n, "ann"))
	}
	require.Zero(t, store.calls)
}

func TestService_VerifyHasAReasonForEachRefusal(t *testing.T) {
	s, store := newService()
	shared := sign(t, keys, seckill.SharedCodes, noon, 1)[0]
	refusal := func(text string) apierror.Reason {
		_, err := s.Verify(viewOf(seckill.SharedCodes), text)
		return apierror.ReasonOf(err)
	}
	require.Equal(t, apierror.CodeRequired, refusal(""))
	require.Equal(t, apierror.CodeInvalid, refusal("x"))
	require.Equal(t, apierror.CodeInvalid, refusal(sign(t, keys, seckill.SingleCodes, noon, 1)[0]))
	require.Equal(t, apierror.CodeInvalid, refusal(shared), "it has ended")
	valid := sign(t, keys, seckill.SharedCodes, noon.Add(time.Hour), 1)[0]
	for _, buyer := range []string{"ann", "bob"} {
		n := must.Get(s.Verify(viewOf(seckill.SharedCodes), valid))(t)
		require.NoError(t, s.Claim(t.Context(), viewOf(seckill.SharedCodes), n, buyer))
	}
	require.Zero(t, store.calls, "shared codes need no storage")
}

// TestService_ClaimLetsOneBuyerIn lets many buyers claim one code at once.
func TestService_ClaimLetsOneBuyerIn(t *testing.T) {
	s, _ := newService()
	view := viewOf(seckill.SingleCodes)
	n := must.Get(s.Verify(view, sign(t, keys, seckill.SingleCodes, time.Time{}, 1)[0]))(t)
	buyers := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	refusals := make([]error, len(buyers))
	var all sync.WaitGroup
	for i, buyer := range buyers {
		all.Go(func() { refusals[i] = s.Claim(t.Context(), view, n, buyer) })
	}
	all.Wait()
	in := 0
	for i, err := range refusals {
		if err == nil {
			in++
			require.NoError(t, s.Claim(t.Context(), view, n, buyers[i]), "again")
			continue
		}
		require.Equal(t, apierror.CodeUsed, apierror.ReasonOf(err))
	}
	require.Equal(t, 1, in)
}

// TestService_ClaimOfUnknownOutcomeIsRepeated has the store fail after it has claimed the code.
func TestService_ClaimOfUnknownOutcomeIsRepeated(t *testing.T) {
	s, store := newService()
	store.err = errors.New("the connection was lost")
	view := viewOf(seckill.SingleCodes)
	require.Equal(t, apierror.Unavailable, apierror.ReasonOf(s.Claim(t.Context(), view, 7, "ann")))
	store.err = nil
	require.NoError(t, s.Claim(t.Context(), view, 7, "ann"))
	require.Equal(t, apierror.CodeUsed, apierror.ReasonOf(s.Claim(t.Context(), view, 7, "bob")))
}
