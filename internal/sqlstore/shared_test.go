package sqlstore

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/testing/must"
)

// TestShareTransaction_KeepsWhatARefusalLeaves runs three steps in one transaction. A refusal of
// the second undoes only its own statements. Any other error undoes the first as well.
func TestShareTransaction_KeepsWhatARefusalLeaves(t *testing.T) {
	t.Parallel()
	unknown := errors.New("the disk is full")
	for _, c := range []struct {
		err  error
		kept int
	}{{errNotNew, 2}, {unknown, 0}} {
		h := newFixture(t, sqliteFile(t))
		sales := []int64{h.exposed(1, 1).GoodsID, h.exposed(1, 1).GoodsID, h.exposed(1, 1).GoodsID}
		take := func(i int, err error) func(tx *gorm.DB) error {
			return func(tx *gorm.DB) error {
				res := tx.Exec("UPDATE sales SET stock = 0 WHERE goods_id = ?", sales[i])
				return errors.Join(res.Error, err)
			}
		}
		refused, err := h.shareTransaction(t.Context(), struct{}{},
			[]func(*gorm.DB) error{take(0, nil), take(1, c.err), take(2, nil)})
		if c.kept == 0 {
			require.ErrorIs(t, err, unknown)
		} else {
			require.NoError(t, err)
			require.NoError(t, errors.Join(refused[0], refused[2]))
			require.ErrorIs(t, refused[1], c.err)
		}
		taken := 0
		for _, goods := range sales {
			if must.Get(h.Sale(t.Context(), goods))(t).Stock == 0 {
				taken++
			}
		}
		require.Equal(t, c.kept, taken)
	}
}
