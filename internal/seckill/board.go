package seckill

import (
	"context"
	"sync"
	"time"
)

// Lister lists exposed sales; Shop is one.
type Lister interface {
	Sales(ctx context.Context, below int64, limit int) ([]View, error)
}

// Board keeps what is shown to everybody in a node's memory, so that it may be asked as often as anybody likes: what it
// shows is at most BoardLife old, and whoever asks for the same page meanwhile waits for one look.
type Board struct {
	lister Lister
	now    func() time.Time
	mu     sync.Mutex
	pages  map[boardKey]*boardPage
}

// BoardLife is how old a page may be when it is shown.
const BoardLife = time.Second

// maxBoard is how many pages are kept: callers choose cursors and sizes, and must not fill the memory.
const maxBoard = 256

type boardKey struct {
	below int64
	limit int
}

// boardPage is one look, under way or done.
type boardPage struct {
	began time.Time
	done  chan struct{}
	views []View
	err   error
}

// NewBoard makes an empty board. now is time.Now but in tests.
func NewBoard(lister Lister, now func() time.Time) *Board {
	return &Board{lister: lister, now: now, pages: make(map[boardKey]*boardPage)}
}

// Sales lists exposed sales as Lister does. The clock of what is shown goes on: each view's Now is this moment's.
func (b *Board) Sales(ctx context.Context, below int64, limit int) ([]View, error) {
	p := b.page(ctx, boardKey{below, limit})
	select {
	case <-p.done:
	case <-ctx.Done():
		return nil, Down("the sales can't be listed in time", context.Cause(ctx))
	}
	if p.err != nil {
		return nil, p.err
	}
	age := b.now().Sub(p.began)
	views := make([]View, len(p.views))
	for i, v := range p.views {
		v.Now = v.Now.Add(max(0, age)).Truncate(time.Millisecond)
		views[i] = v
	}
	return views, nil
}

// page finds a look that is young enough, or begins one.
func (b *Board) page(ctx context.Context, key boardKey) *boardPage {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if p := b.pages[key]; p != nil && now.Sub(p.began) < BoardLife && !p.failed() {
		return p
	}
	p := &boardPage{began: now, done: make(chan struct{})}
	if b.sweep(now); len(b.pages) < maxBoard {
		b.pages[key] = p
	}
	go b.look(context.WithoutCancel(ctx), key, p) // others wait for it, whether this caller does or not
	return p
}

func (b *Board) look(ctx context.Context, key boardKey, p *boardPage) {
	ctx, cancel := context.WithTimeout(ctx, tripDeadline)
	defer cancel()
	defer close(p.done)
	p.views, p.err = b.lister.Sales(ctx, key.below, key.limit)
}

// failed tells whether a look is over and brought nothing: the next caller looks again.
func (p *boardPage) failed() bool {
	select {
	case <-p.done:
		return p.err != nil
	default:
		return false
	}
}

// sweep drops what is too old to be shown.
func (b *Board) sweep(now time.Time) {
	for key, p := range b.pages {
		if now.Sub(p.began) >= BoardLife {
			delete(b.pages, key)
		}
	}
}
