package app_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

// everything returns all of Redis' content as text.
func (h *fixture) everything() string {
	var all strings.Builder
	keys := must.Get(h.Redis.Keys(h.t.Context(), "*").Result())(h.t)
	for _, key := range keys {
		kind := must.Get(h.Redis.Type(h.t.Context(), key).Result())(h.t)
		read := map[string][]any{
			"hash": {"HGETALL", key}, "stream": {"XRANGE", key, "-", "+"},
			"zset": {"ZRANGE", key, 0, -1}, "string": {"GET", key}, "set": {"SMEMBERS", key},
			"none": {"EXISTS", key}, // it has expired meanwhile
		}[kind]
		require.NotNil(h.t, read, "%s is a %s: a kind of key that this test does not read", key,
			kind)
		held := must.Get(h.Redis.Do(h.t.Context(), read...).Result())(h.t)
		fmt.Fprintf(&all, "%s %v\n", key, held)
	}
	return all.String()
}

// files returns the content of all files in the data directory.
func (h *fixture) files() string {
	var all strings.Builder
	err := filepath.WalkDir(h.data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		all.Write(raw)
		return err
	})
	require.NoError(h.t, err)
	return all.String()
}

// TestPhoneNumber_IsSealedWhereverItIsKept checks that Redis, the message, the database's files and
// the log hold no readable phone number or email address. The buyer and the shipping list get both.
// The name is not encrypted, so its presence proves that the test read each place.
func TestPhoneNumber_IsSealedWhereverItIsKept(t *testing.T) {
	h := openIdle(t, time.Hour)
	goods := h.exposed("5", "1")
	ann := buyer(1)
	ann.Email = "ann." + strings.Repeat("x", 238) + "@example.org" // the longest of a token
	r := h.tries(ann, goods, "1")
	require.Equal(t, "UNAVAILABLE", r.Reason, "no worker writes orders yet: %s", r.Body)
	inRedis, inMessage := h.everything(), h.textOf(h.messages)
	require.Contains(t, inRedis, ann.Name)
	require.NotContains(t, inRedis, ann.Phone)
	require.NotContains(t, inRedis, ann.Email)
	require.Contains(t, inMessage, ann.Name)
	require.NotContains(t, inMessage, ann.Phone)
	require.NotContains(t, inMessage, ann.Email)
	h.work()
	var sn string
	h.eventually(func() bool {
		type orders struct {
			Items []struct{ OrderSn, PhoneNumber string }
		}
		for _, o := range dataOf[orders](t, h.as(ann, "GET", "/orders", "")).Items {
			sn = o.OrderSn
			require.Equal(t, "**********3456", o.PhoneNumber)
		}
		return sn != ""
	}, "the order was never written")
	h.becomes(ann, sn, "created")
	id := h.id(goods)
	rows := must.Get(h.Store.OrdersByNumber(t.Context(), id, []string{sn}))(t)
	require.True(t, strings.HasPrefix(rows[0].Phone, "~1."), rows[0].Phone)
	onDisk := h.files()
	require.Contains(t, onDisk, ann.Name)
	for _, secret := range []string{ann.Phone, ann.Email} {
		require.NotContains(t, onDisk, secret)
		require.NotContains(t, h.textOf(h.log), secret)
	}

	require.Contains(t, h.as(ann, "GET", "/orders/"+sn, "").Body,
		`"phoneNumber":"`+ann.Phone+`","email":"`+ann.Email+`"`)
	_, event := h.stream(ann, sn).next()
	require.Contains(t, event, ann.Phone)
	file := h.as(merchant(), "GET", "/admin/sales/"+goods+"/orders?format=csv", "").Body
	require.Contains(t, file, ann.Phone)
	require.Contains(t, file, ann.Email)
	listed := h.as(merchant(), "GET", "/admin/sales/"+goods+"/orders", "").Body
	require.NotContains(t, listed, ann.Phone)
	require.Contains(t, listed, `"email":"a***@example.org"`)
}
