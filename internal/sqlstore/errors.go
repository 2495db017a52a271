package sqlstore

import (
	"errors"
	"fmt"
	"slices"

	"github.com/glebarez/go-sqlite"
	"github.com/go-sql-driver/mysql"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/orderwriter"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/webhook"
)

// errDoesNotFit means that a value does not fit its column. The store checks first, because SQLite
// would store the value and MySQL reject it.
var errDoesNotFit = errors.New("does not fit the database")

// wrapError adds the operation to an error and marks errors of the infrastructure with
// order.ErrTryAgain.
//
// Every error counts as infrastructure unless it is an answer of this package or an error of the
// data. The order does not cause a missing table or an unknown error, so neither may make a
// dead letter of it.
func wrapError(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, order.ErrTryAgain) || isAnswer(err) || isDataError(err):
		return fmt.Errorf("%s: %w", op, err)
	default:
		if remedy := remedyOf(err); remedy != "" {
			op += ": the database" + remedy
		}
		return &tryAgainError{op, err}
	}
}

// tryAgainError is an error of the infrastructure. It is an order.ErrTryAgain without that text,
// because a new transaction does not help against a missing table or a wrong password.
type tryAgainError struct {
	op  string
	err error
}

// Error returns the operation and the database's error.
func (e *tryAgainError) Error() string { return e.op + ": " + e.err.Error() }

// Unwrap returns order.ErrTryAgain and the database's error.
func (e *tryAgainError) Unwrap() []error { return []error{order.ErrTryAgain, e.err} }

// isAnswer reports whether an error is a decision of this package, not a failure of the database.
func isAnswer(err error) bool {
	for _, answer := range []error{
		seckill.ErrNoSuchGoods, rebuild.ErrFenced, order.ErrNoSuchOrder, order.ErrNoSuchDeadLetter,
		errDoesNotFit, webhook.ErrNoSuchEndpoint, webhook.ErrNoSuchDelivery, webhook.ErrLeaseLost,
		payment.ErrNoSuchPayment,
	} {
		if errors.Is(err, answer) {
			return true
		}
	}
	if _, adopt := errors.AsType[*orderwriter.AdoptError](err); adopt {
		return true
	}
	return apierror.ReasonOf(err) != ""
}

// dataErrors are the error numbers of MySQL and MariaDB that one row's values cause.
func dataErrors() []uint16 {
	return []uint16{
		1048, // a column cannot be null
		1153, // the statement is larger than max_allowed_packet
		1264, // out of range
		1265, // data truncated
		1292, // incorrect value
		1300, // invalid character string
		1366, // incorrect string value, or incorrect integer value
		1406, // data too long
		1690, // a BIGINT expression is out of range
		3140, // invalid JSON text
		3819, // a check constraint is violated (MySQL)
		3854, // cannot convert string between character sets
		4025, // a check constraint is violated (MariaDB)
	}
}

// SQLite's primary result codes for the same (https://www.sqlite.org/rescode.html).
const (
	sqliteTooBig     = 18
	sqliteConstraint = 19
	sqliteMismatch   = 20
)

// SQLite's primary result codes of a file that is not ours, of a broken or full disk, and of a
// damaged file.
const (
	sqliteReadOnly   = 8
	sqliteIOErr      = 10
	sqliteCorrupt    = 11
	sqliteFull       = 13
	sqliteCannotOpen = 14
	sqliteNoDatabase = 26
)

// WithRemedy names SQLite's file in an error, and what to do about the file or its disk: the user
// of a standalone may never have seen it.
func WithRemedy(err error, file string) error {
	return fmt.Errorf("the database %s%s: %w", file, remedyOf(err), err)
}

// remedyOf returns what to do about an error of SQLite's file or its disk; "" for other errors.
func remedyOf(err error) string {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return ""
	}
	switch e.Code() & 0xff {
	case sqliteReadOnly, sqliteCannotOpen:
		return " can't be opened and written by this user: correct the permissions of the file " +
			"and its folder"
	case sqliteIOErr, sqliteFull:
		return " can't be read or written: free space on its disk, or repair the disk"
	case sqliteCorrupt, sqliteNoDatabase:
		return " is damaged: restore it from a backup, or move it and its -wal and -shm files " +
			"away to begin with an empty one"
	}
	return ""
}

// isDataError reports whether a row's values caused the error.
func isDataError(err error) bool {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return slices.Contains(dataErrors(), e.Number)
	}
	if errors.Is(err, mysql.ErrPktTooLarge) {
		return true
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		code := e.Code() & 0xff
		return code == sqliteTooBig || code == sqliteMismatch ||
			code == sqliteConstraint && !isDuplicate(err)
	}
	return false
}

// isRefused reports whether a row's values keep it from being written, now and later.
func isRefused(err error) bool { return isDataError(err) || errors.Is(err, errDoesNotFit) }

// SQLite's extended result codes of a unique key that exists already.
const (
	sqliteUnique     = 2067
	sqlitePrimaryKey = 1555
)

// isDuplicate reports whether a unique key exists already. Under the goods row's lock that means
// that another writer ignored the lock. A new transaction will find the row. GORM's own translation
// of such errors would lose the key's name.
func isDuplicate(err error) bool {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return e.Number == 1062
	}
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (e.Code() == sqliteUnique || e.Code() == sqlitePrimaryKey)
}
