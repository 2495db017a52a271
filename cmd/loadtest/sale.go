package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/seckill"
)

// keeperID is the merchant, or the operator, who looks after the sale.
const keeperID = 1

// sale is what is rushed.
type sale struct {
	goodsID string
	startAt time.Time // zero where it is on already
	stock   int64
	limit   int64
}

// signer signs tokens with the API's secret.
type signer struct {
	tokens *auth.Tokens
	ttl    time.Duration
}

// secret is the environment's, or the file's.
func secret(environ []string, file string) (string, error) {
	for _, pair := range environ {
		if s, ok := strings.CutPrefix(pair, "SECKILL_JWT_SECRET="); ok && s != "" {
			return s, nil
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("SECKILL_JWT_SECRET is not set, and -secret-file is not there: tokens can't be signed: %w", err)
	}
	return string(text), nil
}

func newSigner(secret string, ttl time.Duration) (signer, error) {
	tokens, err := auth.New([]byte(secret), 0, time.Now)
	return signer{tokens, ttl}, err
}

func (s signer) buyerToken(id int64) (string, error) {
	return s.tokens.Sign(seckill.Actor{ID: id, Role: seckill.Buyer, Name: "Load Test", Phone: "13800000000"}, s.ttl)
}

// setUp finds the sale, or puts one up.
func (p *play) setUp(ctx context.Context) error {
	role := seckill.Merchant
	if p.goods != "" {
		role = seckill.Operator
	}
	token, err := p.tokens.Sign(seckill.Actor{ID: keeperID, Role: role}, p.ttl)
	if err != nil {
		return err
	}
	p.keeper = apiclient.Client{Base: p.bases[0], Token: token, HTTP: p.books}
	if p.goods != "" {
		return p.find(ctx)
	}
	return p.putUp(ctx)
}

func (p *play) find(ctx context.Context) error {
	var found struct {
		Stock         int64     `json:"stock"`
		PerBuyerLimit int64     `json:"perBuyerLimit"`
		StartAt       time.Time `json:"startAt"`
	}
	if err := p.keeper.Do(ctx, "GET", "/admin/sales/"+p.goods, nil, &found); err != nil {
		return p.hint(fmt.Errorf("find the sale: %w", err))
	}
	p.sale = sale{goodsID: p.goods, startAt: found.StartAt, stock: found.Stock, limit: found.PerBuyerLimit}
	return nil
}

func (p *play) putUp(ctx context.Context) error {
	now := time.Now().UTC().Truncate(time.Millisecond)
	start := now.Add(p.startIn)
	if p.startIn == 0 {
		start = now.Add(-time.Second) // on already, whatever the clocks differ by
	}
	goodsID, err := p.keeper.PutUp(ctx, apiclient.NewSale{
		Title: "A load test", Price: 1999, Stock: p.stock, StartAt: start, EndAt: start.Add(p.timeout + p.settle + time.Hour),
		PerBuyerLimit: p.limit, Rate: p.limiter(),
	})
	if err != nil {
		return p.hint(fmt.Errorf("put up a sale: %w", err))
	}
	p.sale = sale{goodsID: goodsID, startAt: start, stock: p.stock, limit: p.limit}
	return nil
}

// limiter is the sale's rate of random paths: nil leaves it to the API.
func (p *play) limiter() *apiclient.Rate {
	if p.permits == 0 {
		return nil
	}
	r := &apiclient.Rate{PermitsPerSecond: p.permits, MaxBurstSeconds: 1, MaxWaitMillis: 1000}
	if p.profile != "" {
		r.MaxBurstSeconds, r.MaxWaitMillis = 1/p.compress, int64(1000/p.compress)
	}
	return r
}

func (p *play) hint(err error) error {
	return errors.Join(err, fmt.Errorf("is the API up at %s, and is SECKILL_JWT_SECRET its secret?", p.bases[0]))
}

// tidy closes a sale of its own. One that stays open does no harm, and is told of.
func (p *play) tidy(ctx context.Context) {
	if p.goods != "" {
		return
	}
	if err := p.keeper.Do(ctx, "POST", "/admin/sales/"+p.sale.goodsID+"/close", nil, &struct{}{}); err != nil {
		fmt.Fprintf(p.stderr, "the sale stays open: %v\n", err)
	}
}
