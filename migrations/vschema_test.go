package migrations_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/migrations"
)

// keyspace is the part of Vitess' VSchema that the file uses
// (https://vitess.io/docs/reference/features/vschema/).
type keyspace struct {
	Sharded  bool `json:"sharded"`
	Vindexes map[string]struct {
		Type   string            `json:"type"`
		Params map[string]string `json:"params"`
		Owner  string            `json:"owner"`
	} `json:"vindexes"`
	Tables map[string]struct {
		ColumnVindexes []columnVindex `json:"column_vindexes"`
		Pinned         string         `json:"pinned"`
	} `json:"tables"`
}

type columnVindex struct {
	Column string `json:"column"`
	Name   string `json:"name"`
}

// shardedBy returns the column that chooses the shard of a table.
func shardedBy(table string) string {
	switch table {
	case "idempotency_keys":
		return "actor_id"
	case "event_head", "webhook_endpoints", "api_keys":
		return "id"
	case "webhook_deliveries":
		return "endpoint_id"
	default:
		return "goods_id"
	}
}

// uniqueElsewhere are the tables whose keys omit the column that chooses their shard. Each value is
// the reason why the key is unique over all shards.
func uniqueElsewhere() map[string]string {
	return map[string]string{
		"dead_letters": "its id is a UUID of our making",
		"payments":     "payment_id has a unique lookup of its own",
	}
}

var (
	created = regexp.MustCompile(`(?s)CREATE TABLE IF NOT EXISTS (\w+) \((.*?)\n\)`)
	primary = regexp.MustCompile(`PRIMARY KEY \(([^)]*)\)`)
)

// tables returns the definitions of the migrations' tables by name.
func tables(t *testing.T) map[string]string {
	t.Helper()
	files := must.Get(fs.Glob(migrations.Files, "*.sql"))(t)
	found := map[string]string{}
	for _, file := range files {
		text := must.Get(fs.ReadFile(migrations.Files, file))(t)
		up, _, _ := strings.Cut(string(text), "-- +goose Down")
		for _, m := range created.FindAllStringSubmatch(up, -1) {
			found[m[1]] = m[2]
		}
		require.Equal(t, strings.Count(up, "CREATE TABLE"), len(created.FindAllString(up, -1)),
			"%s has a CREATE TABLE that the pattern does not match", file)
	}
	return found
}

func vschema(t *testing.T) keyspace {
	t.Helper()
	file := must.Get(os.Open("../deploy/vitess/vschema.json"))(t)
	defer file.Close()
	dec := json.NewDecoder(file)
	dec.DisallowUnknownFields()
	var k keyspace
	require.NoError(t, dec.Decode(&k))
	return k
}

// TestVSchema_NamesEveryTable checks that the VSchema names every table and its shard column.
// Vitess cannot reach a table that the VSchema omits.
func TestVSchema_NamesEveryTable(t *testing.T) {
	k := vschema(t)
	require.True(t, k.Sharded)
	for table, definition := range tables(t) {
		known, ok := k.Tables[table]
		require.True(t, ok, "deploy/vitess/vschema.json must name %s", table)
		require.NotEmpty(t, known.ColumnVindexes, table)
		first := known.ColumnVindexes[0]
		require.Equal(t, shardedBy(table), first.Column, table)
		require.Equal(t, "xxhash", k.Vindexes[first.Name].Type,
			"%s: the first vindex chooses the shard", table)
		key := primary.FindStringSubmatch(definition)
		require.NotNil(t, key, "%s has no primary key, which group replication requires", table)
		if uniqueElsewhere()[table] == "" {
			require.Contains(t, strings.Split(key[1], ", "), first.Column,
				"%s: the primary key must contain the shard column", table)
		}
		require.NotContains(t, strings.ToUpper(definition), "AUTO_INCREMENT",
			"%s: each shard would number its rows independently", table)
		require.NotContains(t, strings.ToUpper(definition), "REFERENCES", table)
	}
}

// TestVSchema_NamesNothingElse checks that the VSchema names no missing table, no missing column
// and no lookup without a table.
func TestVSchema_NamesNothingElse(t *testing.T) {
	k, known := vschema(t), tables(t)
	lookups := must.Get(os.ReadFile("../deploy/vitess/lookups.sql"))(t)
	for _, m := range created.FindAllStringSubmatch(string(lookups), -1) {
		known[m[1]] = m[2]
	}
	known["goose_db_version"] = "" // the migration tool creates this table
	for table, entry := range k.Tables {
		definition, ok := known[table]
		require.True(t, ok, "there is no table %s", table)
		for _, v := range entry.ColumnVindexes {
			require.Contains(t, k.Vindexes, v.Name)
			require.Regexp(t, `(?m)^\s+`+v.Column+`\s`, definition, "%s has no column %s", table,
				v.Column)
		}
		require.Equal(t, len(entry.ColumnVindexes) == 0, entry.Pinned != "", table)
	}
	for name, v := range k.Vindexes {
		if v.Owner != "" {
			require.Contains(t, k.Tables, v.Params["table"], name)
			require.Contains(t, k.Tables[v.Owner].ColumnVindexes,
				columnVindex{Column: v.Params["from"], Name: name})
		}
	}
}
