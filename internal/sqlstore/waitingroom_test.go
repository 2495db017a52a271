package sqlstore

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/waitingroom/admission"
)

// withRoom exposes a sale that has a waiting room.
func (h fixture) withRoom() seckill.Sale {
	h.t.Helper()
	sale := newSale(5, 1).Draft("1", today)
	sale.Admission = seckill.ByWaitingRoom
	must.Get(h.CreateSale(h.t.Context(), sale, noKey))(h.t)
	return h.beginEpoch(sale.GoodsID)
}

// TestWaitingRoom_ExistsFromExposureOn checks that exposing a sale draws its seed once.
func (h fixture) TestWaitingRoom_ExistsFromExposureOn(t *testing.T) {
	sale := h.withRoom()
	require.Equal(t, seckill.ByWaitingRoom, sale.Admission)
	room := must.Get(h.WaitingRoom(t.Context(), sale.GoodsID))(t)
	require.Len(t, must.Get(hex.DecodeString(room.Seed))(t), sha256.Size)
	require.EqualValues(t, admission.NotDrawn, room.DrawSize)
	h.beginEpoch(sale.GoodsID)
	require.Equal(t, room, must.Get(h.WaitingRoom(t.Context(), sale.GoodsID))(t))
	_, err := h.WaitingRoom(t.Context(), h.exposed(1, 1).GoodsID)
	require.ErrorIs(t, err, errNoRoom)
}

// TestGrantNumbers_GrantsNoNumberTwice lets several masters ask at once. The ranges of different
// masters never overlap, and every number below a master's range that nobody has is in a gap.
func (h fixture) TestGrantNumbers_GrantsNoNumberTwice(t *testing.T) {
	ctx, id := t.Context(), h.withRoom().GoodsID
	grant := func(lease string, handedOut, above int64) admission.Record {
		return must.Get(h.GrantNumbers(ctx, id, admission.Grant{
			Lease: lease, Joined: handedOut, Above: above, Numbers: 100,
		}))(t)
	}
	require.EqualValues(t, 100, grant("a", 0, 0).Limit)
	require.EqualValues(t, 100, grant("a", 0, 0).Limit, "another node has had it granted")
	require.EqualValues(t, 200, grant("a", 0, 100).Limit)
	room := grant("b", 130, 0)
	require.EqualValues(t, []int64{200, 300}, []int64{room.Joined, room.Limit})
	require.Equal(t, []admission.Gap{{From: 131, To: 200}}, room.Gaps)

	var asking sync.WaitGroup
	for _, lease := range []string{"c", "d", "e", "f"} {
		asking.Go(func() {
			_, _ = h.GrantNumbers(ctx, id, admission.Grant{Lease: lease, Numbers: 100})
		})
	}
	asking.Wait()
	room = must.Get(h.WaitingRoom(ctx, id))(t)
	require.EqualValues(t, 700, room.Limit)
	require.Equal(t, []admission.Gap{
		{From: 131, To: 200},
		{From: 201, To: 300},
		{From: 301, To: 400},
		{From: 401, To: 500},
		{From: 501, To: 600},
	}, room.Gaps)
}

// TestGrantNumbers_WholeRoomContinues checks that the next lease of a room that Redis has whole
// gets no gap. A room which is another lease's gets one.
func (h fixture) TestGrantNumbers_WholeRoomContinues(t *testing.T) {
	ctx, id := t.Context(), h.withRoom().GoodsID
	replace := func(lease, replaces string, joined int64) admission.Record {
		return must.Get(h.GrantNumbers(ctx, id, admission.Grant{
			Lease: lease, Replaces: replaces, Joined: joined, Numbers: 100,
		}))(t)
	}
	replace("a/1", "", 0)
	next := replace("a/2", "a/1", 30)
	require.Equal(t, []any{"a/2", int64(30), int64(100)},
		[]any{next.Lease, next.Joined, next.Limit})
	require.Empty(t, next.Gaps)
	require.Empty(t, replace("a/2", "a/1", 30).Gaps, "another node has had it granted")
	next = replace("a/3", "a/1", 40)
	require.Equal(t, []admission.Gap{{From: 41, To: 100}}, next.Gaps, "the room is older")
	last := replace("a/4", "a/3", 200)
	require.Empty(t, last.Gaps[1:], "all its numbers are handed out")
	require.Equal(t, last, replace("a/3", "", 40), "a caller that slept since the last epoch")
}

// TestGrantNumbers_RestoredRoomBeginsAboveTickets runs the statement of the page about backups. The
// backup is older than the room's first number, and the tickets of buyers have up to 10,400.
func (h fixture) TestGrantNumbers_RestoredRoomBeginsAboveTickets(t *testing.T) {
	page := string(must.Get(os.ReadFile("../../docs/how-to/back-up.md"))(t))
	_, rest, _ := strings.Cut(page, "UPDATE waiting_rooms")
	statement, _, _ := strings.Cut(rest, "'")
	ctx, id := t.Context(), h.withRoom().GoodsID
	require.NoError(t, h.db.Exec("UPDATE waiting_rooms"+statement).Error)
	room := must.Get(h.GrantNumbers(ctx, id, admission.Grant{Lease: "a/2", Numbers: 100}))(t)
	require.Greater(t, room.Joined, int64(10400))
	require.Equal(t, []admission.Gap{{From: 1, To: room.Joined}}, room.Gaps)
}

// TestSaveRoom_NeverGoesBack checks that an admitter that was asleep, or that serves a master which
// was replaced, changes nothing.
func (h fixture) TestSaveRoom_NeverGoesBack(t *testing.T) {
	ctx, id := t.Context(), h.withRoom().GoodsID
	must.Get(h.GrantNumbers(ctx, id, admission.Grant{Lease: "a", Numbers: 100}))(t)
	later := admission.Record{
		Joined: 50, Admitted: 9, Turns: []admission.Turn{"7 900", "b1 30"}, Calls: 8, Digest: "d50",
	}
	require.NoError(t, h.SaveRoom(ctx, id, "a", later))
	saved := must.Get(h.WaitingRoom(ctx, id))(t)
	require.Equal(t, later.Turns, saved.Turns)
	require.Equal(t, "d50", saved.Digest)
	require.NoError(t,
		h.SaveRoom(ctx, id, "a", admission.Record{Joined: 50, Admitted: 9, Calls: 8}))
	require.NoError(t,
		h.SaveRoom(ctx, id, "b", admission.Record{Joined: 99, Admitted: 99, Calls: 9}))
	require.Equal(t, saved, must.Get(h.WaitingRoom(ctx, id))(t))
}

// TestDraw_HappensOnce checks that the first draw of the last master counts.
func (h fixture) TestDraw_HappensOnce(t *testing.T) {
	ctx, id := t.Context(), h.withRoom().GoodsID
	must.Get(h.GrantNumbers(ctx, id, admission.Grant{Lease: "a", Numbers: 100}))(t)
	require.EqualValues(t, admission.NotDrawn,
		must.Get(h.Draw(ctx, id, "b", 7, "x"))(t).DrawSize, "a master that was replaced")
	require.EqualValues(t, 8, must.Get(h.Draw(ctx, id, "a", 8, "y"))(t).DrawSize)
	room := must.Get(h.Draw(ctx, id, "a", 9, "z"))(t)
	require.EqualValues(t, 8, room.DrawSize)
	require.Equal(t, "y", room.Digest)
}

// TestHeldUnits_CountsUnpaidOrders checks the units that may return, and until when.
func (h fixture) TestHeldUnits_CountsUnpaidOrders(t *testing.T) {
	sale := h.withRoom()
	held := func() admission.Held { return must.Get(h.HeldUnits(t.Context(), sale.GoodsID))(t) }
	require.Equal(t, admission.Held{Stock: 5}, held())
	sns := []string{h.writeOrder(sale, 1), h.writeOrder(sale, 2)}
	require.EqualValues(t, []int64{2, 3}, []int64{held().Units, held().Stock})
	require.Equal(t, h.order(sale.GoodsID, sns[0]).PayBy, held().Until)
	must.Get(h.Pay(sale.GoodsID, sns[0], today))(t)
	require.EqualValues(t, 1, held().Units)
	must.Get(h.CancelOne(sale.GoodsID, sns[1], today))(t)
	require.Equal(t, admission.Held{Stock: 4}, held())
}
