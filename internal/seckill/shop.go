package seckill

import (
	"context"
	"crypto/md5" //nolint:gosec // the path's form is an MD5; what makes it unguessable is the random part
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"flashsale.dev/seckill/internal/group"
)

// PathLife is how long a random path may be used after it was given.
const PathLife = 60 * time.Second

// Shelf is where random paths are kept.
type Shelf interface {
	// IssuePaths stores paths and returns Redis' clock, or the refusal that holds for everybody, or a *GateError.
	IssuePaths(ctx context.Context, goodsID, epoch int64, life time.Duration, ps []PathGrant) (time.Time, error)
}

// Catalog is what MySQL knows of the sales that buyers may see.
type Catalog interface {
	// Sale reads the row of a sale; ErrNoSuchGoods where there is none.
	Sale(ctx context.Context, goodsID int64) (Sale, error)
	// ExposedSales lists exposed sales, newest first, below a goods id (0: from the top).
	ExposedSales(ctx context.Context, below int64, limit int) ([]Sale, error)
}

// Shop answers buyers: what is on sale, may I come in, and the random path. In a rush it answers from what was seen a
// Moment ago; a path is always given, or refused, by Redis.
type Shop struct {
	front   *Front
	shelf   Shelf
	catalog Catalog
	recent  recent
	paths   *group.Line[pathKey, PathGrant, time.Time]
}

// pathKey keeps those together who think of the same epoch.
type pathKey struct{ goodsID, epoch int64 }

// NewShop makes the shop.
func NewShop(front *Front, shelf Shelf, catalog Catalog) *Shop {
	s := &Shop{front: front, shelf: shelf, catalog: catalog}
	s.paths = group.New(MaxGroup, s.pathTrip)
	return s
}

// Sale is one sale as everybody sees it; see Front.Sale. While many look it may be as old as Moment.
func (s *Shop) Sale(ctx context.Context, goodsID int64) (View, error) {
	l, err := s.look(ctx, goodsID)
	return l.View, err
}

// look is Front's, or one of a moment ago.
func (s *Shop) look(ctx context.Context, goodsID int64) (look, error) {
	if l, fresh := s.recent.recall(goodsID, true); fresh {
		return l, nil
	}
	l, err := s.front.look(ctx, goodsID)
	if err == nil {
		s.recent.keep(l)
	}
	return l, err
}

// Refused is Admit's refusal where it is known without asking anybody, or nil where it is not.
func (s *Shop) Refused(goodsID int64) error {
	l, fresh := s.recent.recall(goodsID, false)
	if !fresh {
		return nil
	}
	return l.Refusal(l.Now, l.Available)
}

// Admit gives a buyer the view of a sale, or the refusal where the sale takes nobody now.
func (s *Shop) Admit(ctx context.Context, goodsID int64) (View, error) {
	l, err := s.look(ctx, goodsID)
	v := l.View
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

// Sales lists exposed sales, newest first, below a goods id (0: from the top). A sale whose Redis is away while another's answers is
// shown as MySQL knows it: it must not take the list from everybody.
func (s *Shop) Sales(ctx context.Context, below int64, limit int) ([]View, error) {
	sales, err := s.catalog.ExposedSales(ctx, below, limit)
	if err != nil {
		return nil, Down("the sales can't be listed", err)
	}
	views, troubles := make([]View, len(sales)), make([]error, len(sales))
	var looks sync.WaitGroup
	for i, sale := range sales {
		looks.Go(func() { views[i], troubles[i] = s.Sale(ctx, sale.GoodsID) })
	}
	looks.Wait()
	return views, standIn(views, troubles, sales)
}

// standIn puts what MySQL says in the place of views that could not be had, where others could.
func standIn(views []View, troubles []error, sales []Sale) error {
	missing := 0
	for i, err := range troubles {
		if err == nil {
			continue
		}
		if missing++; missing == len(sales) || ReasonOf(err) != Unavailable {
			return err
		}
		views[i] = asInMySQL(sales[i])
	}
	return nil
}

// IssuePath gives the buyer a random path to a sale that Admit has let in, and says until when it may be used.
func (s *Shop) IssuePath(ctx context.Context, v View, buyerID int64) (path string, expiresAt time.Time, err error) {
	grant := PathGrant{Path: newPath(v.GoodsID, buyerID), BuyerID: buyerID}
	now, err := s.paths.Do(ctx, pathKey{v.GoodsID, v.Epoch}, grant)
	gate, shut := errors.AsType[*GateError](err)
	if shut && gate.State == GateEpoch { // it was rebuilt since it was looked at
		now, err = s.paths.Do(ctx, pathKey{v.GoodsID, gate.Epoch}, grant)
		gate, shut = errors.AsType[*GateError](err)
	}
	if err == nil {
		return grant.Path, now.Add(PathLife), nil
	}
	s.recent.forget(v.GoodsID) // the sale is not what it was
	switch {
	case shut:
		return "", time.Time{}, Rebuilding(gate)
	case ReasonOf(err) == "":
		return "", time.Time{}, Down("no path can be given", err)
	default:
		return "", time.Time{}, err
	}
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
