// Package migrations is the database's schema: numbered steps for goose, SQL files and one step in Go, one set that MySQL 8.4 and later,
// MariaDB 10.11 and later, and SQLite all take.
//
// What holds in every file:
//   - keys are made by the application; nothing counts up by itself, so that rows may live on any shard;
//   - times are Unix milliseconds (BIGINT, UTC), money is the currency's smallest unit;
//   - the comment that MySQL alone executes (and SQLite skips) fixes engine and character set, whatever the server's
//     defaults: text is compared byte by byte everywhere;
//   - each index says what it is for.
//
// The steps are reached through sqlstore alone. The package imports only embed and goose.
package migrations

import "embed"

// Files holds the SQL files at its root.
//
//go:embed *.sql
var Files embed.FS
