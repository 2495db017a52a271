package sqlstore

import "flashsale.dev/seckill/internal/seckill"

// What the sale's side of the house asks of its truth.
var (
	_ seckill.Truth  = (*Store)(nil)
	_ seckill.Epochs = (*Store)(nil)
)
