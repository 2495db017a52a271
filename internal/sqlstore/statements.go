package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"flashsale.dev/seckill/internal/order"
)

// read returns a session for statements outside a transaction.
func (s *Store) read(ctx context.Context) *gorm.DB { return s.db.WithContext(ctx) }

// inTx runs steps in one transaction and returns their result. It rolls back on an error or a
// panic. After an error of the commit the outcome is unknown.
func inTx[T any](
	ctx context.Context, s *Store, op string, steps func(tx *gorm.DB) (T, error),
) (result T, err error) {
	var got T // a caller whose context ends does not read it
	err = s.transact(ctx, op, func(tx *gorm.DB) (err error) {
		got, err = steps(tx)
		return err
	})
	if err != nil {
		return result, wrapError(op, err) // what steps returned may be rolled back
	}
	return got, nil
}

// transact runs steps in one transaction. On SQLite, batches of orders that are written at the same
// time share one: each commit syncs the file, and buyers wait for that.
func (s *Store) transact(ctx context.Context, op string, steps func(tx *gorm.DB) error) error {
	if s.batches == nil || op != opWriteBatch {
		return s.db.WithContext(ctx).Transaction(steps)
	}
	refused, err := s.batches.Do(ctx, struct{}{}, steps)
	return cmp.Or(err, refused)
}

// sharedBatches bounds the batches of one transaction.
const sharedBatches = 64

// leavesOthers reports whether SQLite, after this error, has undone only the statement that failed.
func leavesOthers(err error) bool {
	return errors.Is(err, errNotNew) || errors.Is(err, order.ErrSwapMissed) || isDuplicate(err) ||
		isAnswer(err) || isDataError(err)
}

// shareTransaction runs the steps of several callers in one transaction, each in a savepoint. An
// error that may have undone the steps of others fails all of them.
func (s *Store) shareTransaction(
	ctx context.Context, _ struct{}, all []func(tx *gorm.DB) error,
) ([]error, error) {
	refused := make([]error, len(all))
	return refused, s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		for i, steps := range all {
			if err := tx.Exec("SAVEPOINT batch").Error; err != nil {
				return err
			}
			refused[i] = steps(tx)
			if refused[i] != nil {
				if !leavesOthers(refused[i]) {
					return refused[i]
				}
				if err := tx.Exec("ROLLBACK TO batch").Error; err != nil {
					return err
				}
			}
			if err := tx.Exec("RELEASE batch").Error; err != nil {
				return err
			}
		}
		return nil
	})
}

// inTx is the function inTx for steps without a result.
func (s *Store) inTx(ctx context.Context, op string, steps func(tx *gorm.DB) error) error {
	_, err := inTx(ctx, s, op, func(tx *gorm.DB) (any, error) { return nil, steps(tx) })
	return err
}

// inSaleTx runs steps in one transaction under the lock of a goods' row, which every writer of the
// goods takes first. Two writers of a goods therefore never deadlock, and each reads what the one
// before has committed.
func inSaleTx[T any](
	ctx context.Context, s *Store, op string, goodsID int64,
	steps func(tx *gorm.DB, sale saleRow) (T, error),
) (T, error) {
	return inSlotTx(ctx, s, op, goodsID, func(tx *gorm.DB) (none T, err error) {
		sale, err := lockSale(tx, goodsID)
		if err != nil {
			return none, err
		}
		return steps(tx, sale)
	})
}

// inSlotTx runs steps, which begin with the lock of a goods' row, in one transaction. It takes a
// slot of the sale before a connection.
func inSlotTx[T any](
	ctx context.Context, s *Store, op string, goodsID int64, steps func(tx *gorm.DB) (T, error),
) (none T, err error) {
	release, err := s.slots.acquire(ctx, goodsID)
	if err != nil {
		return none, wrapError(op, err)
	}
	defer release()
	return inTx(ctx, s, op, steps)
}

// inSaleTx is the function inSaleTx for steps without a result.
func (s *Store) inSaleTx(
	ctx context.Context, op string, goodsID int64, steps func(tx *gorm.DB, sale saleRow) error,
) error {
	_, err := inSaleTx(ctx, s, op, goodsID, func(tx *gorm.DB, sale saleRow) (any, error) {
		return nil, steps(tx, sale)
	})
	return err
}

// locked makes a query lock the rows that it reads until the transaction ends. SQLite ignores it:
// its transactions hold the lock of the whole file.
func locked(tx *gorm.DB) *gorm.DB {
	return tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate})
}

// take reads the row that a query finds, or returns missing if there is none.
func take[R any](q *gorm.DB, missing error) (R, error) {
	var row R
	err := q.Take(&row).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		err = missing
	}
	return row, err
}

// fieldsOf returns the columns of a row, and pointers to its fields in the same order. GORM names
// them, so that a statement without GORM reads what GORM's statements write. A column that may be
// NULL needs a pointer as its field.
func fieldsOf[R any](tx *gorm.DB, row *R) (columns string, into []any, err error) {
	parsed := gorm.Statement{DB: tx}
	if err := parsed.Parse(row); err != nil {
		return "", nil, err
	}
	names, value := parsed.Schema.DBNames, reflect.ValueOf(row).Elem()
	into = make([]any, len(names))
	for i, name := range names {
		field := parsed.Schema.FieldsByDBName[name].ReflectValueOf(tx.Statement.Context, value)
		into[i] = field.Addr().Interface()
	}
	return strings.Join(names, ", "), into, nil
}

// list reads all rows of a query and converts them.
func list[R, D any](op string, q *gorm.DB, convert func(R) D) ([]D, error) {
	var rows []R
	err := q.Find(&rows).Error
	return mapSlice(rows, convert), wrapError(op, err)
}

// halves returns at most limit items of due work, each once. If there is more, up to half of them
// are those that due lists as the newest, and they are the first. Work that cannot be done then
// delays no work that can.
func halves[T comparable](
	limit int, due func(newest bool, limit int) ([]T, error),
) ([]T, error) {
	oldest, err := due(false, limit)
	half := limit / 2
	if err != nil || len(oldest) < limit || half == 0 {
		return oldest, err
	}
	newest, err := due(true, half)
	if err != nil {
		return nil, err
	}
	oldest = slices.DeleteFunc(oldest, func(one T) bool { return slices.Contains(newest, one) })
	return append(newest, oldest[:min(limit-len(newest), len(oldest))]...), nil
}

// newest selects at most limit rows, newest first, whose id in a column is below before (empty:
// from the newest). Such ids sort by time. Unlike those of an offset, the pages do not shift as
// rows are added.
func newest(q *gorm.DB, column, before string, limit int) *gorm.DB {
	if before != "" {
		q = q.Where(column+" < ?", before)
	}
	return q.Order(column + " DESC").Limit(limit)
}

// byIndex makes MySQL and MariaDB read a table by an index. Where most rows of a table match the
// first column, MariaDB finds a page by that column alone and reads the pages before it too.
func byIndex(q *gorm.DB, table, index string) *gorm.DB {
	return q.Table(table + " /*! FORCE INDEX (" + index + ") */")
}

// count counts the rows of a query.
func count[R any](op string, q *gorm.DB) (n int64, err error) {
	err = q.Model(new(R)).Count(&n).Error
	return n, wrapError(op, err)
}

// findIn reads those rows of a goods whose key is among the given ones, in statements of bounded
// size. q has the columns, the order and the locks.
func findIn[R, K any](q *gorm.DB, goodsID int64, column string, keys []K) ([]R, error) {
	q = q.Session(&gorm.Session{}) // each statement begins with the same clauses
	var all []R
	for part := range slices.Chunk(keys, chunkOf(q)) {
		var rows []R
		err := q.Where("goods_id = ? AND "+column+" IN ?", goodsID, part).Find(&rows).Error
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
	}
	return all, nil
}

// createOnce inserts a row; a row with its key that exists is left unchanged.
func createOnce(q *gorm.DB, row any) error {
	if err := q.Create(row).Error; !isDuplicate(err) {
		return err
	}
	return nil
}

// requireRows returns a statement's error, or missed where it changed or read another number of
// rows.
func requireRows(res *gorm.DB, rows int, missed error) error {
	if res.Error == nil && res.RowsAffected != int64(rows) {
		return missed
	}
	return res.Error
}

// updateOne is requireRows for a statement on one row; the caller tries the transaction again.
func updateOne(res *gorm.DB) error { return requireRows(res, 1, order.ErrTryAgain) }

// newID makes an id that sorts by time, so that new rows go to the end of their index. It panics
// without random numbers; Go's source always supplies them.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

// filter returns the elements to keep.
func filter[T any](list []T, keep func(T) bool) (kept []T) {
	for _, e := range list {
		if keep(e) {
			kept = append(kept, e)
		}
	}
	return kept
}

// mapSlice converts each element.
func mapSlice[R, D any](rows []R, convert func(R) D) []D {
	list := make([]D, len(rows))
	for i, r := range rows {
		list[i] = convert(r)
	}
	return list
}
