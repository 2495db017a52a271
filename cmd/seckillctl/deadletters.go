package main

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"flashsale.dev/seckill/internal/app"
	"flashsale.dev/seckill/internal/app/connect"
	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/deadletter"
	"flashsale.dev/seckill/internal/redisstore"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/sqlstore"
)

// deadLettersCmd lists and resolves dead letters: orders that could not be written. Most belong to
// a buyer who got a 202, so a person decides about them.
type deadLettersCmd struct {
	List    listDeadLettersCmd   `cmd:"" help:"Print the dead letters, oldest first."`
	Requeue requeueDeadLetterCmd `cmd:"" help:"Reserve the order's units again and write the order."`
	Discard discardDeadLetterCmd `cmd:"" help:"Delete a dead letter; its order stays failed."`
}

// deadLetterIDs holds the dead letters of a command. A cause such as a wrong secret makes thousands
// of them, and a process for each would connect to the servers thousands of times.
type deadLetterIDs struct {
	IDs []string `arg:"" name:"id" help:"The ids of the dead letters."`
}

// each calls work for each id, also after one has failed. The error is those of all ids. If not all
// of them are refusals, the exit code is that of a failure, because a repetition may succeed.
func (d deadLetterIDs) each(s *session, work func(id string) error) error {
	var problems []error
	code := codeRefused
	for _, id := range d.IDs {
		err := work(id)
		if err == nil {
			continue
		}
		problems = append(problems, fmt.Errorf("%s: %w", id, err))
		if e, ok := errors.AsType[*exitError](withExitCode(err)); !ok || e.code != codeRefused {
			code = codeFailed
		}
		if s.ctx.Err() != nil {
			break
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return &exitError{errors.Join(problems...), code}
}

// requeueFlags holds the flags of a command that requeues. Requeuing reserves in Redis, writes to
// MySQL, and checks by the order secrets that this installation made the order number.
type requeueFlags struct {
	database
	redisServer
	orderSecrets
	PaymentTimeout time.Duration `name:"payment-timeout" env:"SECKILL_PAYMENT_TIMEOUT" default:"15m" help:"Time to pay after an order was written."`
}

// orderSecrets holds the flags of the secrets from which order numbers and access codes are signed.
type orderSecrets struct {
	JWTSecret   config.Secret `name:"jwt-secret" env:"SECKILL_JWT_SECRET" help:"The secret that signs tokens; the secret derived from it verifies order numbers too."`
	OrderSecret config.Secret `name:"order-secret" env:"SECKILL_ORDER_SECRET" help:"The secret that signs order numbers."`
	OldSecrets  config.Secret `name:"old-order-secrets" env:"SECKILL_OLD_ORDER_SECRETS" help:"Former secrets of order numbers, separated by commas."`
}

// keys returns the secrets; the first signs. It refuses a secret of fewer than auth.MinSecret
// bytes: no API starts with it, so no API would accept what it signs.
func (o orderSecrets) keys() ([][]byte, error) {
	const settings = "SECKILL_ORDER_SECRET (--order-secret) or SECKILL_JWT_SECRET " +
		"(--jwt-secret) of the API"
	all := append(o.JWTSecret.Ring(), o.OldSecrets.Ring()...)
	if o.OrderSecret != "" {
		all = append(all, []byte(o.OrderSecret))
	}
	if slices.ContainsFunc(all, func(s []byte) bool { return len(s) < auth.MinSecret }) {
		return nil, usage(fmt.Errorf("%s: each has at least %d bytes", settings, auth.MinSecret))
	}
	keys, err := config.Auth{
		JWTSecret: o.JWTSecret, OrderSecret: o.OrderSecret, OldOrderSecrets: o.OldSecrets,
	}.OrderKeys()
	if err != nil {
		return nil, usage(fmt.Errorf("%s: %w", settings, err))
	}
	return keys, nil
}

// with opens MySQL and Redis, calls work and closes them.
func (r *requeueFlags) with(s *session, work func(*deadletter.Service) error) error {
	keys, err := r.keys()
	if err != nil {
		return err
	}
	client := connect.RedisOf(r.settings())
	defer client.Close()
	return r.database.with(s, func(store *sqlstore.Store) error {
		parts := app.Parts{
			Store: store, RedisStore: redisstore.New(client, redisstore.Options{
				WaitReplicas: r.WaitReplicas, WaitTimeout: r.WaitTimeout,
			}),
			Log: slog.New(slog.DiscardHandler), // the command's own output reports the result
		}
		settings := app.Settings{OrderSecrets: keys, PaymentTimeout: r.PaymentTimeout}
		return work(parts.DeadLetterService(settings))
	})
}

// listDeadLettersCmd prints the dead letters, oldest first.
type listDeadLettersCmd struct{ database }

// Run prints one line per dead letter: text, or a JSON object. It reads page by page: after a long
// outage there may be more than fit into memory.
func (c *listDeadLettersCmd) Run(s *session) error {
	return c.with(s, func(store *sqlstore.Store) error {
		for after := ""; ; {
			page, err := store.DeadLetters(s.ctx, after, 100)
			if err != nil || len(page) == 0 {
				return err
			}
			for _, d := range page {
				if err := printDeadLetter(s, d); err != nil {
					return err
				}
			}
			after = page[len(page)-1].ID
		}
	})
}

func printDeadLetter(s *session, d order.DeadLetter) error {
	return s.printLine(d, "%s  %s  %-10s  goods %d  order %s  %d attempts, from %s", d.ID,
		d.FirstSeenAt.Format(time.RFC3339), d.Reason, d.GoodsID, d.OrderSn, d.Attempts, d.Origin)
}

// requeueDeadLetterCmd reserves the units again and writes the order under the number of the 202.
// If no units are available, the command is refused and the dead letter remains.
type requeueDeadLetterCmd struct {
	requeueFlags
	deadLetterIDs
}

// Run prints the number and the status of each written order.
func (c *requeueDeadLetterCmd) Run(s *session) error {
	return c.with(s, func(service *deadletter.Service) error {
		return c.each(s, func(id string) error {
			o, err := service.Requeue(s.ctx, cliActor(), id)
			if err != nil {
				return err
			}
			return s.print(map[string]any{"orderSn": o.OrderSn, "status": o.Status}, "%s is %s",
				o.OrderSn, o.Status)
		})
	})
}

// discardDeadLetterCmd deletes a dead letter. It requires confirmation, because a dead letter is
// the last record of the buyer's purchase.
type discardDeadLetterCmd struct {
	database
	confirmation
	deadLetterIDs
}

// Run fails if one of the dead letters does not exist.
func (c *discardDeadLetterCmd) Run(s *session) error {
	what := "Delete dead letter " + strings.Join(c.IDs, ", ")
	if err := c.confirmed(s, what); err != nil {
		return err
	}
	return c.with(s, func(store *sqlstore.Store) error {
		return c.each(s, func(id string) error {
			now, err := store.Now(s.ctx)
			if err == nil {
				err = store.RemoveDeadLetter(seckill.WithActor(s.ctx, cliActor()), id, now)
			}
			if err != nil {
				return err
			}
			return s.print(map[string]string{"discarded": id}, "discarded %s", id)
		})
	})
}
