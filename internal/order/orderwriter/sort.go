package orderwriter

import (
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/message"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// sorted is a batch by goods.
type sorted struct {
	goods []int64 // in the order of their first line
	// doneBefore says of each of goods how many of the batch's first messages are complete once all
	// goods ahead of it are written.
	doneBefore []int
	lines      map[int64][]sourcedLine
	barriers   []goodsBarrier
	dead       []order.DeadLetter // lines and messages that break a rule
}

type goodsBarrier struct {
	goodsID int64
	message.Barrier
}

// sourcedLine is an order line and the delivery that contained it.
type sourcedLine struct {
	reservation.OrderLine
	delivery order.DeliveryInfo
}

// sort groups a batch by goods, because one transaction locks one goods row.
func (w *Writer) sort(batch []received) sorted {
	s := sorted{lines: make(map[int64][]sourcedLine)}
	done := 0 // messages before the first barrier, which the writer records last
	for i, r := range batch {
		if len(s.barriers) == 0 {
			done = i
		}
		switch {
		case r.err != nil:
			s.dead = append(s.dead, newMalformed(0, "", r.DeliveryInfo, r.Body))
		case r.message.Barrier != nil:
			s.barriers = append(s.barriers, goodsBarrier{r.message.GoodsID, *r.message.Barrier})
		default:
			w.sortLines(&s, r, done)
		}
	}
	return s
}

// sortLines adds the lines of one message. An invalid line becomes a dead letter, and the valid
// lines of its message are written. done is how many messages from the batch's start on are
// complete once the goods that s already has are written.
func (w *Writer) sortLines(s *sorted, r received, done int) {
	goods := r.message.GoodsID
	for _, l := range r.message.Orders {
		n, err := w.Keys.Verify(l.OrderSn, l.BuyerID)
		if err != nil || n.GoodsID != goods || message.CheckLine(l) != nil {
			s.dead = append(s.dead,
				newMalformed(goods, l.OrderSn, r.DeliveryInfo, message.EncodeLine(l)))
			continue
		}
		if _, known := s.lines[goods]; !known {
			s.goods, s.doneBefore = append(s.goods, goods), append(s.doneBefore, done)
		}
		l.Epoch = max(l.Epoch, n.Epoch) // earlier releases wrote it into the number
		s.lines[goods] = append(s.lines[goods], sourcedLine{l, r.DeliveryInfo})
	}
}
