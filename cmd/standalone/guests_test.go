package main

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGuestsAt_OnlyOnLoopbackWithoutProxiesUnlessForced(t *testing.T) {
	for _, c := range []struct {
		ip              string
		proxied, wanted bool
		off             string
	}{
		{ip: "127.0.0.1"},
		{ip: "::1"},
		{ip: "0.0.0.0", off: "listens beyond this machine"},
		{ip: "192.0.2.1", off: "listens beyond this machine"},
		{ip: "127.0.0.1", proxied: true, off: "trusted proxies"},
		{ip: "0.0.0.0", proxied: true, wanted: true},
	} {
		guests, off := guestsAt(&net.TCPAddr{IP: net.ParseIP(c.ip)}, c.proxied, c.wanted)
		require.Contains(t, off, c.off)
		require.Equal(t, c.off != "", off != "")
		require.Equal(t, off == "", len(guests) == 4, off)
	}
}
