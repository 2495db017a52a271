// Package seckill defines the sale and its rules. They are its life from draft to closed, its
// window, its gate, and the ledger that accounts for every unit. Package reservation has paths and
// reservations; package salechange has what merchants change.
//
// MySQL is the source of truth about a sale. Redis is the permission to sell it, one epoch at a
// time, and can always be rebuilt from MySQL. Redis' clock alone determines whether a sale has
// started or ended. All times are UTC.
//
// The package uses neither SQL nor Redis nor HTTP.
package seckill
