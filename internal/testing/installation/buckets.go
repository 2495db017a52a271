package installation

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

// Buckets lists the goods ids of a sale's buckets, its own first; that alone where its stock is whole.
func Buckets(t testing.TB, goods string) []string {
	t.Helper()
	var list []string
	for _, id := range seckill.BucketsOf(number(t, goods)) {
		list = append(list, strconv.FormatInt(id, 10))
	}
	return list
}

// BucketOf is the goods id of the bucket from which a buyer buys.
func BucketOf(t testing.TB, goods string, buyer int64) string {
	t.Helper()
	return strconv.FormatInt(seckill.BucketOf(number(t, goods), buyer), 10)
}

// Neighbours gives buyers of one bucket of a sale: ids from the first on, with gaps.
func Neighbours(t testing.TB, goods string, bucket int, first int64) func(i int) int64 {
	t.Helper()
	sale := number(t, goods)
	home := seckill.BucketsOf(sale)[bucket]
	var ids []int64
	return func(i int) int64 {
		for ; len(ids) <= i; first++ {
			if seckill.BucketOf(sale, first) == home {
				ids = append(ids, first)
			}
		}
		return ids[i]
	}
}

// within is a condition on the goods ids of a sale's buckets, and its arguments.
func within(t testing.TB, goods string) (condition string, args []any) {
	t.Helper()
	for _, id := range Buckets(t, goods) {
		args = append(args, id)
	}
	return "goods_id IN (?" + strings.Repeat(",?", len(args)-1) + ")", args
}

func number(t testing.TB, goods string) int64 {
	t.Helper()
	id, err := strconv.ParseInt(goods, 10, 64)
	require.NoError(t, err)
	return id
}
