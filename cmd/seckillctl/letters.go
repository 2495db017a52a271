package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"flashsale.dev/seckill/internal/app/connect"
	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/deadletter"
	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/redisstore"
	"flashsale.dev/seckill/internal/sqlstore"
)

// lettersCmd resolves orders that could not be written.
type lettersCmd struct {
	List    listLettersCmd   `cmd:"" help:"Print the dead letters, oldest first."`
	Requeue requeueLetterCmd `cmd:"" help:"Take the order's units anew and write it."`
	Discard discardLetterCmd `cmd:"" help:"Forget a dead letter and the order that it holds; the order stays failed."`
}

// resolver is the flags of those that resolve dead letters.
type resolver struct {
	database
	redisServer
	JWTSecret      config.Secret `name:"jwt-secret" env:"SECKILL_JWT_SECRET" help:"The secret that signs tokens; order numbers are marked by it where there is no order secret."`
	OrderSecret    config.Secret `name:"order-secret" env:"SECKILL_ORDER_SECRET" help:"The secret that marks order numbers."`
	PaymentTimeout time.Duration `name:"payment-timeout" env:"SECKILL_PAYMENT_TIMEOUT" default:"15m" help:"Time to pay after an order was written."`
}

// with lets a coroner work.
func (r *resolver) with(s *stage, work func(*deadletter.Service) error) error {
	key, err := config.Auth{JWTSecret: r.JWTSecret, OrderSecret: r.OrderSecret}.OrderKey()
	if err != nil {
		return err
	}
	store, err := sqlstore.Open(s.ctx, r.DSN, sqlstore.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	client := connect.RedisOf(r.settings())
	defer client.Close()
	shelf, log := redisstore.New(client, redisstore.Options{}), slog.New(slog.DiscardHandler)
	giver := inventory.NewStockReleaser(store, shelf, log)
	return work(deadletter.NewService(store, shelf, giver, ordersn.NewMinter(key), r.PaymentTimeout, log))
}

type listLettersCmd struct{ database }

// letterLine is what is printed of a letter: the body, with a buyer's name and number in it, is not.
type letterLine struct {
	ID          string    `json:"id"`
	OrderSn     string    `json:"orderSn"`
	GoodsID     int64     `json:"goodsId,string"`
	Reason      string    `json:"reason"`
	Attempts    int       `json:"attempts"`
	FirstSeenAt time.Time `json:"firstSeenAt"`
	Origin      string    `json:"origin"`
}

// Run prints page after page: a line a letter, or a JSON object a line.
func (c *listLettersCmd) Run(s *stage) error {
	store, err := sqlstore.Open(s.ctx, c.DSN, sqlstore.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	for after := ""; ; {
		page, err := store.DeadLetters(s.ctx, after, 100)
		if err != nil || len(page) == 0 {
			return err
		}
		if err := printLetters(s, page); err != nil {
			return err
		}
		after = page[len(page)-1].ID
	}
}

func printLetters(s *stage, letters []order.DeadLetter) error {
	enc := json.NewEncoder(s.stdout)
	for _, d := range letters {
		line := letterLine{d.ID, d.OrderSn, d.GoodsID, string(d.Reason), d.Attempts, d.FirstSeenAt, d.Origin}
		var err error
		if s.json {
			err = enc.Encode(line)
		} else {
			_, err = fmt.Fprintf(s.stdout, "%s  %s  %-10s  goods %d  order %s  %d attempts, from %s\n",
				d.ID, d.FirstSeenAt.Format(time.RFC3339), d.Reason, d.GoodsID, d.OrderSn, d.Attempts, d.Origin)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

type requeueLetterCmd struct {
	resolver
	ID string `arg:"" help:"The dead letter's id."`
}

// Run prints the number of the order that was written.
func (c *requeueLetterCmd) Run(s *stage) error {
	return c.with(s, func(coroner *deadletter.Service) error {
		o, err := coroner.Requeue(s.ctx, c.ID)
		if err != nil {
			return err
		}
		return s.print(map[string]any{"orderSn": o.OrderSn, "status": o.Status}, "%s is %s", o.OrderSn, o.Status)
	})
}

type discardLetterCmd struct {
	database
	sure
	ID string `arg:"" help:"The dead letter's id."`
}

// Run fails where there is no such letter.
func (c *discardLetterCmd) Run(s *stage) error {
	if err := c.confirmed(s, "Forget dead letter "+c.ID+" and the order that it holds"); err != nil {
		return err
	}
	store, err := sqlstore.Open(s.ctx, c.DSN, sqlstore.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	if err := store.RemoveDeadLetter(s.ctx, c.ID); err != nil {
		return err
	}
	return s.print(map[string]string{"discarded": c.ID}, "discarded %s", c.ID)
}
