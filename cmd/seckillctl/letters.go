package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/redisstore"
	"flashsale.dev/seckill/internal/servers"
	"flashsale.dev/seckill/internal/sqlstore"
)

// lettersCmd resolves orders that could not be written.
type lettersCmd struct {
	List    listLettersCmd   `cmd:"" help:"Print the dead letters, oldest first, a JSON object a line."`
	Requeue requeueLetterCmd `cmd:"" help:"Take the order's units anew and write it."`
	Discard discardLetterCmd `cmd:"" help:"Forget a dead letter; its order stays failed."`
}

// resolver is the flags of those that resolve dead letters.
type resolver struct {
	database
	Redis          string        `name:"redis-addrs" env:"SECKILL_REDIS_ADDRS" default:"127.0.0.1:6379" help:"Redis, comma list; more than one is a cluster."`
	Master         string        `name:"redis-sentinel-master" env:"SECKILL_REDIS_SENTINEL_MASTER" help:"Name of the master that the sentinels watch."`
	JWTSecret      config.Secret `name:"jwt-secret" env:"SECKILL_JWT_SECRET" help:"The secret that signs tokens; order numbers are marked by it where there is no order secret."`
	OrderSecret    config.Secret `name:"order-secret" env:"SECKILL_ORDER_SECRET" help:"The secret that marks order numbers."`
	PaymentTimeout time.Duration `name:"payment-timeout" env:"SECKILL_PAYMENT_TIMEOUT" default:"15m" help:"Time to pay after an order was written."`
}

// with lets a coroner work.
func (r *resolver) with(s *stage, work func(*order.Coroner) error) error {
	key, err := config.Auth{JWTSecret: r.JWTSecret, OrderSecret: r.OrderSecret}.OrderKey()
	if err != nil {
		return err
	}
	store, err := sqlstore.Open(s.ctx, r.DSN, sqlstore.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	client := servers.Redis(strings.Split(r.Redis, ","), r.Master)
	defer client.Close()
	shelf, log := redisstore.New(client, redisstore.Options{}), slog.New(slog.DiscardHandler)
	giver := order.NewGiver(store, shelf, log)
	return work(order.NewCoroner(store, shelf, giver, ordersn.NewMinter(key), r.PaymentTimeout, log))
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

// Run prints page after page.
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
		if err := printLetters(s.stdout, page); err != nil {
			return err
		}
		after = page[len(page)-1].ID
	}
}

func printLetters(w io.Writer, letters []order.DeadLetter) error {
	enc := json.NewEncoder(w)
	for _, d := range letters {
		line := letterLine{d.ID, d.OrderSn, d.GoodsID, string(d.Reason), d.Attempts, d.FirstSeenAt, d.Origin}
		if err := enc.Encode(line); err != nil {
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
	return c.with(s, func(coroner *order.Coroner) error {
		o, err := coroner.Requeue(s.ctx, c.ID)
		if err != nil {
			return err
		}
		fmt.Fprintf(s.stdout, "%s is %s\n", o.OrderSn, o.Status)
		return nil
	})
}

type discardLetterCmd struct {
	database
	ID string `arg:"" help:"The dead letter's id."`
}

// Run fails where there is no such letter.
func (c *discardLetterCmd) Run(s *stage) error {
	store, err := sqlstore.Open(s.ctx, c.DSN, sqlstore.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	if err := store.RemoveDeadLetter(s.ctx, c.ID); err != nil {
		return err
	}
	fmt.Fprintln(s.stdout, "discarded", c.ID)
	return nil
}
