package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"

	"flashsale.dev/seckill/internal/app"
	"flashsale.dev/seckill/internal/app/connect"
	"flashsale.dev/seckill/internal/ratelimit/rules"
)

// limiterCmd reads and changes limiters on all nodes. It writes the overrides to Redis itself, so
// that an operator can loosen a limit that locks callers out of the API. It needs no MySQL, so the
// audit log has no entry of these changes.
type limiterCmd struct {
	Get    getLimiterCmd    `cmd:"" help:"Print the limit of a key, and its usage. Only the API knows a sale's own rate."`
	Set    setLimiterCmd    `cmd:"" help:"Override fields of a limit, on every node within a second. The others become the rule's, not those of a sale's own rate."`
	Delete deleteLimiterCmd `cmd:"" help:"Remove an override: the limit of the sale or the rule applies again."`
}

// limiter holds the flags and arguments that name a limiter. The file matters because an override
// changes single fields of a rule: both must read the same rules.
type limiter struct {
	redisServer
	File string `name:"ratelimit-file" env:"SECKILL_RATELIMIT_FILE" help:"File of the nodes' rules; the built-in rules if empty."`
	Type string `arg:"" help:"The rule's name, such as randomPath."`
	Key  string `arg:"" help:"The key that the rule counts by, such as a goods id; * for every key."`
}

// with calls work, then removes this process from the list of nodes that share the limits, which it
// joins when it reads the overrides. An extra node would lower each API's share while Redis is
// down.
func (l *limiter) with(s *session, work func(*rules.Admin) error) error {
	client := connect.RedisOf(l.settings())
	defer client.Close()
	limits, err := app.NewLimits(l.File, 0, client, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return usage(err) // of the file of rules
	}
	err = work(limits.Admin(nil, nil))
	over, cancel := context.WithCancel(context.WithoutCancel(s.ctx))
	cancel()
	_ = limits.Run(over) // an entry that is not removed expires after some seconds
	return err
}

// getLimiterCmd prints the limit that applies to a key.
type getLimiterCmd struct{ limiter }

// Run prints the limit.
func (c *getLimiterCmd) Run(s *session) error {
	return c.with(s, func(a *rules.Admin) error {
		setting, err := a.Get(s.ctx, c.Type, c.Key)
		return printSetting(s, setting, err)
	})
}

// setLimiterCmd overrides fields of a limit.
type setLimiterCmd struct {
	limiter
	Fields []string `arg:"" help:"Fields as name=value: permitsPerSecond=500 maxBurstSeconds=2 …, with the API's names."`
}

// Run prints the new limit.
func (c *setLimiterCmd) Run(s *session) error {
	change, err := changeOf(c.Fields)
	if err != nil {
		return usage(err)
	}
	return c.with(s, func(a *rules.Admin) error {
		setting, err := a.Set(s.ctx, c.Type, c.Key, change)
		return printSetting(s, setting, err)
	})
}

// changeOf parses name=value pairs. A value is a number, a boolean, or else a string. JSON then
// checks names and types, so that the command line refuses what the API would refuse.
func changeOf(fields []string) (c rules.Change, err error) {
	values := make(map[string]any, len(fields))
	for _, f := range fields {
		name, value, ok := strings.Cut(f, "=")
		if !ok {
			return c, fmt.Errorf("%q is not name=value", f)
		}
		values[name] = value
		n, err := strconv.ParseFloat(value, 64)
		if err == nil && !math.IsNaN(n) && !math.IsInf(n, 0) { // JSON has neither
			values[name] = n
		} else if flag, err := strconv.ParseBool(value); err == nil {
			values[name] = flag
		}
	}
	text, err := json.Marshal(values)
	if err != nil {
		return c, err
	}
	dec := json.NewDecoder(strings.NewReader(string(text)))
	dec.DisallowUnknownFields()
	err = dec.Decode(&c)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return c, fmt.Errorf("%s: has the wrong type", wrong.Field)
	}
	if err != nil { // the package has no type for this error
		err = fmt.Errorf("%s: limiter get prints the names",
			strings.TrimPrefix(err.Error(), "json: "))
	}
	return c, err
}

// deleteLimiterCmd removes an override. It requires confirmation, because it also resets the
// limiter and so admits a burst at once.
type deleteLimiterCmd struct {
	limiter
	confirmation
}

// Run removes an override.
func (c *deleteLimiterCmd) Run(s *session) error {
	if err := c.confirmed(s,
		fmt.Sprintf("Remove the limit set for %s %s", c.Type, c.Key)); err != nil {
		return err
	}
	return c.with(s, func(a *rules.Admin) error {
		if err := a.Delete(s.ctx, c.Type, c.Key); err != nil {
			return err
		}
		return s.print(map[string]string{"removed": c.Type + " " + c.Key}, "removed %s %s", c.Type,
			c.Key)
	})
}

// printSetting prints a setting, or returns the error. The text has the limit as JSON, because each
// algorithm uses other fields.
func printSetting(s *session, setting rules.Setting, err error) error {
	if err != nil {
		return err
	}
	text, err := json.Marshal(setting)
	if err != nil {
		return err
	}
	return s.print(setting, "%s %s, by the %s: %s", setting.Type, setting.Key, setting.Source, text)
}
