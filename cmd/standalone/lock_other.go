//go:build !unix

package main

import (
	"fmt"
	"os"
)

// lock makes the data directory. That no second process works on it is the operator's care here:
// there is no file lock of the standard library that ends with the process.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	return func() {}, nil
}
