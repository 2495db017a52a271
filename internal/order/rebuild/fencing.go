package rebuild

import "errors"

// ErrFenced means that something happened during this rebuild: a newer one of the sale began, the
// gate was opened, a merchant changed the sale, or Redis was emptied, restarted or replaced. This
// rebuild must stop. It has changed nothing in Redis.
var ErrFenced = errors.New("a newer rebuild of the sale has begun, or it was opened or changed, " +
	"or Redis was emptied, restarted or replaced")

// FirstToken replaces a fencing token for the first epoch of a draft.
const FirstToken = 0
