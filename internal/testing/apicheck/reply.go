package apicheck

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Reply is a response in the API's common JSON shape. The fields of the shape are empty if the body
// is not JSON.
type Reply struct {
	Status    int             `json:"-"`
	Header    http.Header     `json:"-"`
	Body      string          `json:"-"`
	Code      int             `json:"code"`
	Reason    string          `json:"reason"`
	Message   string          `json:"message"`
	Data      json.RawMessage `json:"data"`
	RequestID string          `json:"requestId"`
}

// ReadReply reads and closes a response.
func ReadReply(res *http.Response) (r Reply, err error) {
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && strings.HasPrefix(string(body), "{") {
		err = json.Unmarshal(body, &r)
	}
	if err != nil {
		err = fmt.Errorf("read %q: %w", body, err)
	}
	r.Status, r.Header, r.Body = res.StatusCode, res.Header, string(body)
	return r, err
}
