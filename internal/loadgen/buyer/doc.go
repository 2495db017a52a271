// Package buyer plays buyers against a running API, over HTTP, as strangers would: they ask for a random path, try to
// buy with it, wait politely where they are told to, and look at their order until it is written. It keeps what each
// was told, so that it can be held against what the API says afterwards.
//
// It knows the contract and nothing of the service's inside.
package buyer
