package sqlstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"flashsale.dev/seckill/internal/seckill/accesscode"
)

// claimRow makes a single access code one buyer's.
type claimRow struct {
	GoodsID   int64             `gorm:"primaryKey;autoIncrement:false"`
	Code      accesscode.Number `gorm:"primaryKey;autoIncrement:false"`
	BuyerID   string
	ClaimedAt int64
}

func (claimRow) TableName() string { return "code_claims" }

// ClaimCodes assigns each code to the first buyer who claims it, and returns the owner of each
// claim's code, in order. A claim of a code that has an owner changes nothing, so repeats are
// harmless. ClaimCodes takes no lock of the goods row. It inserts the codes in ascending order, so
// that concurrent calls cannot deadlock.
func (s *Store) ClaimCodes(
	ctx context.Context, goodsID int64, claims []accesscode.Claim, now time.Time,
) ([]string, error) {
	owners, err := s.ownersOf(ctx, goodsID, claims)
	if err != nil {
		return nil, err
	}
	rows := make([]claimRow, 0, len(claims))
	for _, c := range claims {
		if owners[c.Code] == "" {
			rows = append(rows, claimRow{goodsID, c.Code, c.BuyerID, now.UnixMilli()})
		}
	}
	if len(rows) > 0 {
		slices.SortStableFunc(rows, func(a, b claimRow) int { return cmp.Compare(a.Code, b.Code) })
		// Of a code's rows the first one stays. Vitess forbids an update of the shard's column.
		keep := clause.OnConflict{
			Columns:   []clause.Column{{Name: "goods_id"}, {Name: "code"}},
			DoUpdates: clause.Assignments(map[string]any{"buyer_id": gorm.Expr("code_claims.buyer_id")}),
		}
		if err := insert(s.read(ctx).Clauses(keep), rows); err != nil {
			return nil, wrapError("claim access codes", err)
		}
		if owners, err = s.ownersOf(ctx, goodsID, claims); err != nil {
			return nil, err
		}
	}
	return mapSlice(claims, func(c accesscode.Claim) string { return owners[c.Code] }), nil
}

// ownersOf returns the owners of the claims' codes that have one.
func (s *Store) ownersOf(
	ctx context.Context, goodsID int64, claims []accesscode.Claim,
) (map[accesscode.Number]string, error) {
	codes := mapSlice(claims, func(c accesscode.Claim) accesscode.Number { return c.Code })
	rows, err := findIn[claimRow](s.read(ctx).Select("code", "buyer_id"), goodsID, "code", codes)
	owners := make(map[accesscode.Number]string, len(rows))
	for _, r := range rows {
		owners[r.Code] = r.BuyerID
	}
	return owners, wrapError("read the owners of access codes", err)
}
