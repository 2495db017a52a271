package seckill

import (
	"context"
	"crypto/md5" //nolint:gosec // the path's form is an MD5; what makes it unguessable is the random part
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"flashsale.dev/seckill/internal/group"
)

// PathLife is how long a random path may be used after it was given.
const PathLife = 60 * time.Second

// Shelf is a sale in Redis as buyers' calls need it.
type Shelf interface {
	// View reads a sale; ErrNotLoaded where Redis has nothing of it.
	View(ctx context.Context, goodsID int64) (View, error)
	// IssuePaths stores paths and returns Redis' clock, or the refusal that holds for everybody, or a *GateError.
	IssuePaths(ctx context.Context, goodsID, epoch int64, life time.Duration, ps []PathGrant) (time.Time, error)
}

// Catalog is what MySQL knows of the sales that buyers may see.
type Catalog interface {
	// Sale reads one sale; ErrNoSuchGoods where there is none.
	Sale(ctx context.Context, goodsID int64) (Sale, error)
	// ExposedSales lists exposed sales, newest first, below a goods id (0: from the top).
	ExposedSales(ctx context.Context, below int64, limit int) ([]Sale, error)
}

// Shop answers buyers: what is on sale, may I come in, and the random path.
type Shop struct {
	shelf   Shelf
	catalog Catalog
	views   *group.Line[int64, struct{}, View]
	paths   *group.Line[pathKey, PathGrant, time.Time]
}

// pathKey keeps those together who think of the same epoch.
type pathKey struct{ goodsID, epoch int64 }

// tripDeadline bounds one trip to Redis for a group of buyers.
const tripDeadline = 2 * time.Second

// NewShop makes the shop over Redis and MySQL.
func NewShop(shelf Shelf, catalog Catalog) *Shop {
	s := &Shop{shelf: shelf, catalog: catalog}
	s.views = group.New(MaxGroup, s.viewTrip)
	s.paths = group.New(MaxGroup, s.pathTrip)
	return s
}

// viewTrip asks once and gives everybody the same answer.
func (s *Shop) viewTrip(ctx context.Context, goodsID int64, askers []struct{}) ([]View, error) {
	ctx, cancel := context.WithTimeout(ctx, tripDeadline)
	defer cancel()
	v, err := s.shelf.View(ctx, goodsID)
	if err != nil {
		return nil, err
	}
	views := make([]View, len(askers))
	for i := range views {
		views[i] = v
	}
	return views, nil
}

// Sale is one sale as a buyer sees it: NotFound where there is none or it is a draft. A sale that is over and that Redis
// has forgotten is read from MySQL.
func (s *Shop) Sale(ctx context.Context, goodsID int64) (View, error) {
	v, err := s.views.Do(ctx, goodsID, struct{}{})
	switch {
	case err == nil:
		return v, nil
	case errors.Is(err, ErrNotLoaded):
		return s.unloaded(ctx, goodsID)
	default:
		return View{}, Down("the sale can't be looked at", err)
	}
}

// unloaded tells apart why Redis has nothing of a goods.
func (s *Shop) unloaded(ctx context.Context, goodsID int64) (View, error) {
	sale, err := s.catalog.Sale(ctx, goodsID)
	switch {
	case errors.Is(err, ErrNoSuchGoods), err == nil && sale.Status == Draft:
		return View{}, Refuse(NotFound, "there is no such sale")
	case err != nil:
		return View{}, Down("the sale can't be looked up", err)
	}
	return View{Sale: sale, Gate: GateMissing, Available: sale.Stock, Sold: sale.Total - sale.Stock, Now: time.Now().UTC()}, nil
}

// Admit is Sale for somebody who wants to buy: the refusal where the sale takes nobody now.
func (s *Shop) Admit(ctx context.Context, goodsID int64) (View, error) {
	v, err := s.Sale(ctx, goodsID)
	if err != nil {
		return v, err
	}
	if v.Gate != GateOpen && v.PhaseAt(v.Now, v.Available) != PhaseEnded {
		return v, Rebuilding(&GateError{State: v.Gate, Epoch: v.Epoch})
	}
	return v, v.Refusal(v.Now, v.Available)
}

// Rebuilding is the refusal of a sale whose gate is shut; it opens again by itself.
func Rebuilding(err error) *Error {
	return Down("the sale is being put in order for a moment", err)
}

// Sales lists exposed sales, newest first, below a goods id (0: from the top).
func (s *Shop) Sales(ctx context.Context, below int64, limit int) ([]View, error) {
	sales, err := s.catalog.ExposedSales(ctx, below, limit)
	if err != nil {
		return nil, Down("the sales can't be listed", err)
	}
	views := make([]View, 0, len(sales))
	for _, sale := range sales {
		v, err := s.Sale(ctx, sale.GoodsID)
		if err != nil {
			return nil, err
		}
		views = append(views, v)
	}
	return views, nil
}

// IssuePath gives the buyer a random path to a sale that Admit has let in, and says until when it may be used.
func (s *Shop) IssuePath(ctx context.Context, v View, buyerID int64) (path string, expiresAt time.Time, err error) {
	path = newPath(v.GoodsID, buyerID)
	now, err := s.paths.Do(ctx, pathKey{v.GoodsID, v.Epoch}, PathGrant{Path: path, BuyerID: buyerID})
	if gate, ok := errors.AsType[*GateError](err); ok {
		return "", time.Time{}, Rebuilding(gate)
	}
	if err != nil && ReasonOf(err) == "" {
		return "", time.Time{}, Down("no path can be given", err)
	}
	return path, now.Add(PathLife), err
}

func (s *Shop) pathTrip(ctx context.Context, key pathKey, ps []PathGrant) ([]time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, tripDeadline)
	defer cancel()
	now, err := s.shelf.IssuePaths(ctx, key.goodsID, key.epoch, PathLife, ps)
	if err != nil {
		return nil, err
	}
	nows := make([]time.Time, len(ps))
	for i := range nows {
		nows[i] = now
	}
	return nows, nil
}

// newPath is the MD5 of goods, buyer and 128 random bits: nobody can guess it, and it tells nothing.
func newPath(goodsID, buyerID int64) string {
	var b [32]byte
	binary.BigEndian.PutUint64(b[0:], uint64(goodsID))
	binary.BigEndian.PutUint64(b[8:], uint64(buyerID))
	_, _ = rand.Read(b[16:]) // never fails: crypto/rand ends the program rather than return an error
	sum := md5.Sum(b[:])     //nolint:gosec // see the import
	return hex.EncodeToString(sum[:])
}

// CheckPath tells whether a string has the form of a random path: 32 lower-case hex digits.
func CheckPath(path string) error {
	if len(path) != 2*md5.Size {
		return fmt.Errorf("a path has %d digits, not %d", 2*md5.Size, len(path))
	}
	for _, c := range []byte(path) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return errors.New("a path has lower-case hex digits only")
		}
	}
	return nil
}
