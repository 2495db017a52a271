-- +goose Up
-- An operator reads the newest entries of all sales, or those with one action.
CREATE INDEX sale_audit_by_id ON sale_audit (id);
CREATE INDEX sale_audit_by_action ON sale_audit (action, id);

-- +goose Down
DROP INDEX sale_audit_by_action /*! ON sale_audit */;
DROP INDEX sale_audit_by_id /*! ON sale_audit */;
