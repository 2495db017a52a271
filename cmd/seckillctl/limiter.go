package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"flashsale.dev/seckill/internal/app"
	"flashsale.dev/seckill/internal/app/connect"
	"flashsale.dev/seckill/internal/ratelimit/rules"
)

// limiterCmd reads and changes limiters.
type limiterCmd struct {
	Get    getLimiterCmd    `cmd:"" help:"Tell which limit holds for a key, and how full it is. A sale's own rate is told by the API alone."`
	Set    setLimiterCmd    `cmd:"" help:"Lay a change over the limit that holds, on every node within a second."`
	Delete deleteLimiterCmd `cmd:"" help:"Remove what was set: the sale's or the rule's own limit holds again."`
}

// limiter is the flags of those that name one.
type limiter struct {
	redisServer
	File string `name:"ratelimit-file" env:"SECKILL_RATELIMIT_FILE" help:"The rules that the nodes have; the built-in ones if empty."`
	Type string `arg:"" help:"The rule's name, such as randomPath."`
	Key  string `arg:"" help:"What it counts by, such as a goods id; * for every key."`
}

// with lets an admin work, and is no node of the installation any more afterwards.
func (l *limiter) with(s *stage, work func(*rules.Admin) error) error {
	client := connect.RedisOf(l.settings())
	defer client.Close()
	limits, err := app.NewLimits(l.File, client, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	err = work(limits.Admin(nil))
	over, cancel := context.WithCancel(context.WithoutCancel(s.ctx))
	cancel()
	_ = limits.Run(over) // it leaves; a node that did not is forgotten after some seconds
	return err
}

type getLimiterCmd struct{ limiter }

// Run prints the limit.
func (c *getLimiterCmd) Run(s *stage) error {
	return c.with(s, func(a *rules.Admin) error {
		setting, err := a.Get(s.ctx, c.Type, c.Key)
		return printSetting(s, setting, err)
	})
}

type setLimiterCmd struct {
	limiter
	Fields []string `arg:"" help:"What to change, as name=value: permitsPerSecond=500 maxBurstSeconds=2 …; the names are the API's."`
}

// Run prints the limit that holds from now on.
func (c *setLimiterCmd) Run(s *stage) error {
	change, err := changeOf(c.Fields)
	if err != nil {
		return usage(err)
	}
	return c.with(s, func(a *rules.Admin) error {
		setting, err := a.Set(s.ctx, c.Type, c.Key, change)
		return printSetting(s, setting, err)
	})
}

// changeOf reads name=value pairs; numbers, true and false are themselves, anything else is text.
func changeOf(fields []string) (c rules.Change, err error) {
	values := make(map[string]any, len(fields))
	for _, f := range fields {
		name, value, ok := strings.Cut(f, "=")
		if !ok {
			return c, fmt.Errorf("%q is not name=value", f)
		}
		values[name] = value
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			values[name] = n
		} else if truth, err := strconv.ParseBool(value); err == nil {
			values[name] = truth
		}
	}
	text, err := json.Marshal(values)
	if err != nil {
		return c, err
	}
	dec := json.NewDecoder(strings.NewReader(string(text)))
	dec.DisallowUnknownFields()
	return c, dec.Decode(&c)
}

type deleteLimiterCmd struct {
	limiter
	sure
}

// Run removes what an operator set.
func (c *deleteLimiterCmd) Run(s *stage) error {
	if err := c.confirmed(s, fmt.Sprintf("Remove the limit set for %s %s", c.Type, c.Key)); err != nil {
		return err
	}
	return c.with(s, func(a *rules.Admin) error {
		if err := a.Delete(s.ctx, c.Type, c.Key); err != nil {
			return err
		}
		return s.print(map[string]string{"removed": c.Type + " " + c.Key}, "removed %s %s", c.Type, c.Key)
	})
}

func printSetting(s *stage, setting rules.Setting, err error) error {
	if err != nil {
		return err
	}
	text, err := json.Marshal(setting)
	if err != nil {
		return err
	}
	return s.print(setting, "%s %s, by the %s: %s", setting.Type, setting.Key, setting.Source, text)
}
