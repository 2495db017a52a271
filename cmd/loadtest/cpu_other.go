//go:build !unix

package main

import "time"

// processorTime is unknown on this system; the report shows 0.
func processorTime() time.Duration { return 0 }
