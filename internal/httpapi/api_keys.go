package httpapi

import (
	"context"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/apikey"
)

// apiKeyResponse is an API key without its secret.
type apiKeyResponse struct {
	ID         string         `json:"id"`
	MerchantID string         `json:"merchantId"`
	Name       string         `json:"name"`
	Scopes     []apikey.Scope `json:"scopes"`
	Prefix     string         `json:"prefix"`
	CreatedBy  string         `json:"createdBy"`
	CreatedAt  timestamp      `json:"createdAt"`
	LastUsedAt timestamp      `json:"lastUsedAt,omitzero"`
	RevokedBy  string         `json:"revokedBy,omitzero"`
	RevokedAt  timestamp      `json:"revokedAt,omitzero"`
}

func newAPIKeyResponse(k apikey.Key) apiKeyResponse {
	return apiKeyResponse{
		ID: k.ID, MerchantID: k.MerchantID, Name: k.Name, Scopes: k.Scopes, Prefix: k.Prefix(),
		CreatedBy: k.CreatedBy, CreatedAt: timestamp(k.CreatedAt),
		LastUsedAt: timestamp(k.LastUsedAt),
		RevokedBy:  k.RevokedBy, RevokedAt: timestamp(k.RevokedAt),
	}
}

// newKeyResponse is the only response with the text of a key.
type newKeyResponse struct {
	Key string `json:"key"`
	apiKeyResponse
}

// createAPIKey is POST /admin/api-keys. Merchants make keys of their own; operators name the
// merchant.
func (a *api) createAPIKey(ctx context.Context, r *request) (response, error) {
	n := apikey.NewKey{MerchantID: r.actor.ID, Name: r.Text("name")}
	for _, scope := range r.List("scopes") {
		n.Scopes = append(n.Scopes, apikey.Scope(scope))
	}
	if r.Has("merchantId") || isOperator(r.actor) {
		n.MerchantID = r.Text("merchantId")
	}
	if err := r.Check(n.Validate()); err != nil {
		return response{}, err
	}
	if err := r.permit(ctx, r.ownMerchant(n.MerchantID)); err != nil {
		return response{}, err
	}
	k, text, err := a.APIKeys.Create(ctx, r.actor, n)
	return response{
		reason: reasonCreated,
		data:   newKeyResponse{Key: text, apiKeyResponse: newAPIKeyResponse(k)},
	}, err
}

// ownMerchant returns a lookup that refuses another merchant than the caller.
func (r *request) ownMerchant(id string) func() error {
	return func() error {
		if id != "" && !r.actor.MayManage(id) {
			return apierror.New(apierror.Forbidden, "this is another merchant")
		}
		return nil
	}
}

// listAPIKeys is GET /admin/api-keys. Operators see the keys of all merchants, or of one.
func (a *api) listAPIKeys(ctx context.Context, r *request) (response, error) {
	limit, before := r.limit(), r.cursor(apiKeyCursor, apikey.ValidID)
	merchantID := textOr(r.Fields, "merchantId")
	if err := r.Err(); err != nil {
		return response{}, err
	}
	if err := r.permit(ctx, r.ownMerchant(merchantID)); err != nil {
		return response{}, err
	}
	found, err := a.APIKeys.List(ctx, r.actor, merchantID, before, limit+1)
	key := func(k apikey.Key) string { return apiKeyCursor + k.ID }
	return ok(page(found, limit, newAPIKeyResponse, key)), err
}

// revokeAPIKey is DELETE /admin/api-keys/{id}. It answers with the key, which lists go on to show.
func (a *api) revokeAPIKey(ctx context.Context, r *request) (response, error) {
	err := r.permit(ctx, func() error { return errorOnly(a.APIKeys.Find(ctx, r.Raw("id"))) })
	if err != nil {
		return response{}, err
	}
	k, err := a.APIKeys.Revoke(ctx, r.actor, r.Raw("id"))
	return ok(newAPIKeyResponse(k)), err
}
