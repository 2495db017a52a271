package buyer

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/waitingroom"
)

// Habit is what a buyer does in a line and when its turn has come.
type Habit string

// The habits.
const (
	Prompt  Habit = "prompt"  // buys and pays at once
	Eager   Habit = "eager"   // the same, and reads its place ten times a second
	Leaver  Habit = "leaver"  // leaves the line when its turn has come
	Sleeper Habit = "sleeper" // lets its turn pass
	Unpaid  Habit = "unpaid"  // buys and never pays
)

// Room is a buyer's view of the waiting room of a sale.
type Room struct {
	Habit   Habit
	Monitor *Monitor
}

// The steps of a buyer in a line.
const (
	StepJoin  Step = "join"  // POST /sales/{goodsId}/waiting-room
	StepPlace Step = "place" // GET /sales/{goodsId}/waiting-room/me
	StepLeave Step = "leave" // DELETE /sales/{goodsId}/waiting-room/me
	StepPay   Step = "pay"   // POST /orders/{orderSn}/pay
)

// Place is what a buyer saw of its place in a line, by the generator's clock.
type Place struct {
	Habit            Habit
	Number, Position int64     // in the API's last answer; no position before the draw
	Joined           time.Time // answer to the join
	Seen             time.Time // first answer that the turn has come; zero if none did
	Until            time.Time // end of the turn
	Left             time.Time // answer to the leave; zero if it failed
	Tried            time.Time // first call of the purchase
	Decided          time.Time // answer to the purchase; zero if the buyer was stopped before it
	State            string    // in the API's last answer
}

// placeAnswer is the API's answer about a place.
type placeAnswer struct {
	Ticket        string    `json:"ticket"`
	Number        int64     `json:"number"`
	Position      int64     `json:"position"`
	State         string    `json:"state"`
	AdmittedUntil time.Time `json:"admittedUntil"`
}

// Times between two readings of a place that does not seem to be called.
const (
	eagerPause = 100 * time.Millisecond
	placePause = 10 * time.Second
)

// pause is the longest time between two readings of a place.
func (h Habit) pause() time.Duration {
	if h == Eager {
		return eagerPause
	}
	return placePause
}

// CannotMiss reports whether a buyer with this habit always reads its place during its turn. The
// turn must be longer than the pause between two readings and the slowest reading.
func (h Habit) CannotMiss(turn, slowestReading time.Duration) bool {
	return turn > h.pause()+slowestReading
}

// Buys reports whether a buyer with this habit tries to buy when its turn has come.
func (h Habit) Buys() bool { return h == Prompt || h == Eager || h == Unpaid }

// buyInTurn joins the line, waits for the buyer's turn, and then acts by the buyer's habit.
func (b Buyer) buyInTurn(ctx context.Context, t *Result) error {
	defer func() { t.DecisionTime = time.Since(t.Started) }()
	t.Place.Habit = b.Room.Habit
	line := "/sales/" + b.GoodsID + "/waiting-room"
	a, err := b.CallWithRetry(ctx, t, time.Now().Add(b.Patience), StepJoin, line)
	if err != nil || a.Status != http.StatusOK {
		t.finish(a)
		return err
	}
	if err := t.recordPlace(a); err != nil {
		return err
	}
	t.Place.Joined = time.Now()
	if err := b.awaitTurn(ctx, t, line); err != nil || t.Place.State != "admitted" {
		return err
	}
	if b.Room.Habit == Sleeper {
		return b.missTurn(ctx, t, line)
	}
	if b.Room.Habit == Leaver {
		a, err := b.CallWithRetry(ctx, t, t.Place.Until, StepLeave, line+"/me")
		t.Outcome = Left
		if err == nil && a.Status == http.StatusOK {
			t.Place.Left = time.Now()
		}
		return err
	}
	return b.buyAndPay(ctx, t)
}

// awaitTurn reads the buyer's place until it is no longer waiting. The public status shows when its
// turn may have come.
func (b Buyer) awaitTurn(ctx context.Context, t *Result, line string) error {
	for t.Place.State == "waiting" {
		over, err := b.Room.Monitor.await(ctx, t.Place.Number, b.Room.Habit)
		if err != nil {
			return err
		}
		if over {
			t.Place.State = "over"
			break
		}
		if err := b.readPlace(ctx, t, line); err != nil {
			return err
		}
	}
	switch t.Place.State {
	case "over":
		t.Outcome = SoldOut
	case "missed":
		t.Outcome = Missed
	}
	return nil
}

func (b Buyer) readPlace(ctx context.Context, t *Result, line string) error {
	a, err := b.CallWithRetry(ctx, t, time.Now().Add(b.Patience), StepPlace,
		line+"/me?ticket="+url.QueryEscape(t.ticket))
	if err != nil {
		return err
	}
	return t.recordPlace(a)
}

// missTurn waits until the turn is over, and reads that it is.
func (b Buyer) missTurn(ctx context.Context, t *Result, line string) error {
	t.Outcome = Missed
	if err := apiclient.Sleep(ctx, time.Until(t.Place.Until)+eagerPause); err != nil {
		return err
	}
	return b.readPlace(ctx, t, line)
}

func (b Buyer) buyAndPay(ctx context.Context, t *Result) error {
	t.Place.Tried = time.Now()
	if err := b.purchaseInTurn(ctx, t); err != nil || t.Outcome != Won {
		return err
	}
	if err := b.pollOrder(ctx, t, time.Now().Add(b.Patience)); err != nil {
		return err
	}
	if b.Room.Habit == Unpaid {
		return nil
	}
	_, err := b.CallWithRetry(ctx, t, time.Now().Add(b.Patience), StepPay,
		"/orders/"+t.OrderSn+"/pay")
	return err
}

// purchaseInTurn tries to buy until the turn is over. A rebuild of the sale extends the turn, so a
// buyer whom the API did not serve reads the new end.
func (b Buyer) purchaseInTurn(ctx context.Context, t *Result) error {
	for until := t.Place.Until; ; until = t.until {
		failures := t.failures
		if err := b.purchase(ctx, t, until); err != nil {
			return err
		}
		t.Place.Decided = time.Now()
		if t.Outcome != GaveUp || t.failures == failures {
			return nil
		}
		err := b.readPlace(ctx, t, "/sales/"+b.GoodsID+"/waiting-room")
		if err != nil || t.Place.State != "admitted" || !t.until.After(until) {
			return ctx.Err() // a buyer who has bought without knowing it has no place
		}
	}
}

// recordPlace records an answer about the buyer's place.
func (t *Result) recordPlace(a apiclient.Answer) error {
	var p placeAnswer
	if err := a.Into(&p); err != nil {
		return err
	}
	t.ticket, t.until = p.Ticket, p.AdmittedUntil
	t.Place.Number, t.Place.Position, t.Place.State = p.Number, p.Position, p.State
	if p.State == "admitted" && t.Place.Seen.IsZero() {
		t.Place.Seen, t.Place.Until = time.Now(), p.AdmittedUntil
	}
	return nil
}

// Line is the public status of a waiting room.
type Line struct {
	waitingroom.Published
	Phase            string  `json:"phase"`
	Admitted         int64   `json:"admitted"`
	AdmissionSeconds float64 `json:"admissionSeconds"`
}

// ReadLine reads the public status of a waiting room.
func ReadLine(ctx context.Context, c apiclient.Client, goodsID string) (line Line, err error) {
	read := apiclient.ReadInto("read a waiting room", &line)
	err = read(c.API().ShowWaitingRoom(ctx, goodsID, nil))
	return line, err
}
