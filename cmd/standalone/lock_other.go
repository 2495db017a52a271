//go:build !unix

package main

import (
	"fmt"
	"os"
)

// lock makes the data directory. It locks nothing: the standard library has no file lock on this
// system that ends with the process. The operator must not start two processes on one directory.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory %s (-data): %w", dir, err)
	}
	return func() {}, nil
}
