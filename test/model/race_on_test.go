//go:build race

package model

const fewer = 20
