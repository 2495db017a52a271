package batcher

import "time"

const (
	timeout = 5 * time.Second
	tick    = time.Millisecond
)
