// Package migrations is the database's schema: numbered steps for goose, SQL files and two steps in
// Go. MySQL 8.4 and later, MariaDB 10.11 and later, and SQLite accept all of them.
//
// Rules for every file:
//   - The application makes keys; nothing increments by itself, so rows may live on any shard.
//   - Times are Unix milliseconds (BIGINT, UTC); money is the currency's smallest unit.
//   - A comment that only MySQL executes fixes engine and character set: text is compared by bytes.
//   - Each index names its purpose.
//
// Only sqlstore uses the package, which imports nothing but embed and goose.
package migrations

import "embed"

// Files holds the SQL files at its root.
//
//go:embed *.sql
var Files embed.FS
