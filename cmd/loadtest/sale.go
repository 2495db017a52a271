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

// merchantID is the user id of the merchant or operator that manages the sale.
const merchantID = 1

// sale is the sale under load.
type sale struct {
	goodsID string
	startAt time.Time // zero if it has started
	stock   int64
	limit   int64
}

// signer signs tokens with the API's secret.
type signer struct {
	tokens *auth.Tokens
	ttl    time.Duration
}

// secret reads the signing secret from the environment or from the file.
func secret(environ []string, file string) (string, error) {
	for _, pair := range environ {
		if s, ok := strings.CutPrefix(pair, "SECKILL_JWT_SECRET="); ok && s != "" {
			return s, nil
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("set SECKILL_JWT_SECRET or -secret-file to sign tokens: %w", err)
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

// setUp finds the sale of -goods or creates one.
func (p *loadTest) setUp(ctx context.Context) error {
	role := seckill.Merchant
	if p.goods != "" {
		role = seckill.Operator
	}
	token, err := p.tokens.Sign(seckill.Actor{ID: merchantID, Role: role}, p.ttl)
	if err != nil {
		return err
	}
	p.merchant = apiclient.Client{Base: p.bases[0], Token: token, HTTP: p.http}
	if p.goods != "" {
		return p.findSale(ctx)
	}
	return p.createSale(ctx)
}

func (p *loadTest) findSale(ctx context.Context) error {
	var found struct {
		Stock         int64     `json:"stock"`
		PerBuyerLimit int64     `json:"perBuyerLimit"`
		StartAt       time.Time `json:"startAt"`
	}
	if err := p.merchant.Do(ctx, "GET", "/admin/sales/"+p.goods, nil, &found); err != nil {
		return p.hint(fmt.Errorf("find the sale: %w", err))
	}
	p.sale = sale{goodsID: p.goods, startAt: found.StartAt, stock: found.Stock, limit: found.PerBuyerLimit}
	return nil
}

func (p *loadTest) createSale(ctx context.Context) error {
	now := time.Now().UTC().Truncate(time.Millisecond)
	start := now.Add(p.startIn)
	if p.startIn == 0 {
		start = now.Add(-time.Second) // already started, even if the clocks differ
	}
	goodsID, err := p.merchant.PutUp(ctx, apiclient.NewSale{
		Title: "A load test", Price: 1999, Stock: p.stock, StartAt: start, EndAt: start.Add(p.timeout + p.settle + time.Hour),
		PerBuyerLimit: p.limit, Rate: p.limiter(),
	})
	if err != nil {
		return p.hint(fmt.Errorf("create a sale: %w", err))
	}
	p.sale = sale{goodsID: goodsID, startAt: start, stock: p.stock, limit: p.limit}
	return nil
}

// limiter is the sale's rate of random paths; nil keeps the API's default.
func (p *loadTest) limiter() *apiclient.Rate {
	if p.permits == 0 {
		return nil
	}
	r := &apiclient.Rate{PermitsPerSecond: p.permits, MaxBurstSeconds: 1, MaxWaitMillis: 1000}
	if p.profile != "" {
		r.MaxBurstSeconds, r.MaxWaitMillis = 1/p.compress, int64(1000/p.compress)
	}
	return r
}

func (p *loadTest) hint(err error) error {
	return errors.Join(err, fmt.Errorf("is the API up at %s, and is SECKILL_JWT_SECRET its secret?", p.bases[0]))
}

// closeSale closes the sale that this load test created. A failure is only logged.
func (p *loadTest) closeSale(ctx context.Context) {
	if p.goods != "" {
		return
	}
	if err := p.merchant.Do(ctx, "POST", "/admin/sales/"+p.sale.goodsID+"/close", nil, &struct{}{}); err != nil {
		fmt.Fprintf(p.stderr, "the sale stays open: %v\n", err)
	}
}
