-- +goose Up
-- A merchant's audit log has the entries of the merchant's actions, also on drafts that are gone.
CREATE INDEX sale_audit_by_actor ON sale_audit (actor_id, id);

-- +goose Down
DROP INDEX sale_audit_by_actor /*! ON sale_audit */;
