package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/seckill"
)

// merchantID is the user id of the merchant or operator that manages the sale. It owns the sales of
// all load tests.
const merchantID = "1"

// secret reads the signing secret from the environment, else from the file. The environment has
// priority, because the file may belong to another API than the one under test.
func secret(environ []string, file string) (string, error) {
	for _, pair := range environ {
		if s, ok := strings.CutPrefix(pair, "SECKILL_JWT_SECRET="); ok && s != "" {
			return string(config.Secret(s).Ring()[0]), nil // the others only verify
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("set SECKILL_JWT_SECRET or -secret-file to sign tokens: %w", err)
	}
	if len(text) == 0 {
		return "", fmt.Errorf("the secret %s is empty: set SECKILL_JWT_SECRET to the API's, or "+
			"-secret-file to another file", file)
	}
	return string(config.Secret(text).Ring()[0]), nil // an editor ends a file by a line break
}

// setUp finds the sale of -goods as an operator, who may read every sale, or creates one as a
// merchant. It completes the plan with the sale's id and start. Most first runs fail here on the
// address or the secret, so the error mentions both.
func (p *loadTest) setUp(ctx context.Context) error {
	role, prepare := seckill.Merchant, p.createSale
	if p.goods != "" {
		role, prepare = seckill.Operator, p.findSale
	}
	token, err := p.sign(seckill.Actor{ID: merchantID, Role: role})
	if err != nil {
		return err
	}
	p.merchant = apiclient.Client{Base: p.Bases[0], Token: token, HTTP: p.http}
	if err := prepare(ctx); err != nil {
		hint := fmt.Errorf("is the API up at %s (-addr), and is SECKILL_JWT_SECRET its secret?",
			p.Bases[0])
		return errors.Join(err, hint)
	}
	return nil
}

// findSale reads an exposed sale. The verdict needs its limit, and the buyers wait for its start.
func (p *loadTest) findSale(ctx context.Context) error {
	var found struct {
		Stock         int64     `json:"stock"`
		PerBuyerLimit int64     `json:"perBuyerLimit"`
		StartAt       time.Time `json:"startAt"`
	}
	read := apiclient.ReadInto("find the sale", &found)
	if err := read(p.merchant.API().ShowOwnSale(ctx, p.goods)); err != nil {
		return err
	}
	p.GoodsID, p.StartAt = p.goods, found.StartAt
	p.stock, p.limit = found.Stock, found.PerBuyerLimit
	return nil
}

// createSale creates and exposes a sale that ends long after the load and the checks. Otherwise the
// API would refuse late orders because the sale has ended.
func (p *loadTest) createSale(ctx context.Context) (err error) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	start, kind := now.Add(p.startIn), ""
	if p.startIn == 0 {
		start = now.Add(-time.Second) // already started, even if the clocks differ
	}
	if p.Room != nil {
		kind = string(seckill.ByWaitingRoom)
	}
	p.GoodsID, err = p.merchant.PutUp(ctx, apiclient.NewSale{
		Title: "A load test", Price: 1999, Stock: p.stock, PerBuyerLimit: p.limit,
		Rate: p.limiter(), StartAt: start, Admission: kind,
		EndAt: start.Add(p.timeout + p.settle + time.Hour),
	})
	if err != nil {
		return fmt.Errorf("create a sale: %w", err)
	}
	if p.Room == nil { // buyers of a waiting room come before its start
		p.StartAt = start
	}
	return nil
}

// limiter returns the sale's rate of random paths; nil keeps the API's default. A profile
// compresses the burst and the longest wait too: a burst of an uncompressed second would admit a
// minute of the profile's buyers.
func (p *loadTest) limiter() *apiclient.Rate {
	if p.permits == 0 {
		return nil
	}
	return &apiclient.Rate{
		PermitsPerSecond: p.permits, MaxBurstSeconds: 1 / p.compress,
		MaxWaitMillis: int64(1000 / p.compress),
	}
}

// closeSale closes the sale that this load test created, so that the public list does not keep it.
// It leaves a sale of -goods open.
func (p *loadTest) closeSale(ctx context.Context) error {
	if p.goods != "" {
		return nil
	}
	return apiclient.ReadInto("close the sale", &struct{}{})(
		p.merchant.API().CloseSale(ctx, p.GoodsID))
}
