package fakestripe

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSession_IsTheOrdersNewest(t *testing.T) {
	s := &Server{sessions: map[string]Object{}}
	require.Empty(t, s.Session("1"))
	for range 12 {
		newest := s.id("cs_test")
		s.sessions[newest] = Object{"client_reference_id": "1"}
		require.Equal(t, newest, s.Session("1"))
		s.sessions[s.id("cs_test")] = Object{"client_reference_id": "2"}
	}
}
