package orderwriter

import (
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// sorted is a batch by goods, in the order in which they first came.
type sorted struct {
	goods    []int64
	lines    map[int64][]sourcedLine
	barriers []goodsBarrier
	dead     []order.DeadLetter
}

type goodsBarrier struct {
	goodsID int64
	order.Barrier
}

// sourcedLine is a line, the epoch in its number, and the delivery that carried it.
type sourcedLine struct {
	reservation.OrderLine
	epoch    int64
	delivery order.DeliveryInfo
}

func (w *Writer) sort(batch []received) sorted {
	s := sorted{lines: make(map[int64][]sourcedLine)}
	for _, r := range batch {
		switch {
		case r.err != nil:
			s.dead = append(s.dead, w.dead(0, "", order.FailedMalformed, r.DeliveryInfo, r.Body))
		case r.message.Barrier != nil:
			s.barriers = append(s.barriers, goodsBarrier{r.message.GoodsID, *r.message.Barrier})
		default:
			w.sortLines(&s, r)
		}
	}
	return s
}

func (w *Writer) sortLines(s *sorted, r received) {
	goods := r.message.GoodsID
	for _, l := range r.message.Orders {
		n, err := w.minter.Parse(l.OrderSn)
		if err != nil || n.GoodsID != goods || order.CheckLine(l) != nil {
			body, _ := order.EncodeLine(l) // strings and numbers: it can't fail
			s.dead = append(s.dead, w.dead(goods, l.OrderSn, order.FailedMalformed, r.DeliveryInfo, body))
			continue
		}
		if _, seen := s.lines[goods]; !seen {
			s.goods = append(s.goods, goods)
		}
		s.lines[goods] = append(s.lines[goods], sourcedLine{OrderLine: l, epoch: n.Epoch, delivery: r.DeliveryInfo})
	}
}
