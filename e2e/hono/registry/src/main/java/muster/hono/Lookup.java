package muster.hono;

import java.util.List;
import java.util.Set;

import javax.security.auth.x500.X500Principal;

import org.eclipse.hono.deviceregistry.app.AbstractAmqpServerFactory;
import org.eclipse.hono.deviceregistry.service.credentials.AbstractCredentialsService;
import org.eclipse.hono.deviceregistry.service.credentials.CredentialKey;
import org.eclipse.hono.deviceregistry.service.device.AbstractRegistrationService;
import org.eclipse.hono.deviceregistry.service.device.DeviceKey;
import org.eclipse.hono.deviceregistry.service.tenant.AbstractTenantService;
import org.eclipse.hono.deviceregistry.service.tenant.TenantKey;
import org.eclipse.hono.deviceregistry.util.DeviceRegistryUtils;
import org.eclipse.hono.service.management.credentials.CommonCredential;
import org.eclipse.hono.service.tenant.TenantService;
import org.eclipse.hono.util.CacheDirective;
import org.eclipse.hono.util.CredentialsConstants;
import org.eclipse.hono.util.CredentialsResult;
import org.eclipse.hono.util.RegistrationConstants;
import org.eclipse.hono.util.RegistrationResult;
import org.eclipse.hono.util.TenantResult;

import io.opentracing.Span;
import io.vertx.core.Future;
import io.vertx.core.json.JsonArray;
import io.vertx.core.json.JsonObject;
import jakarta.inject.Inject;
import jakarta.inject.Singleton;

/**
 * What adapters and the command router ask the registry for. Neither certificates nor groups of gateways nor the
 * validity periods of secrets are supported, as Muster provisions none.
 */
@Singleton
class Lookup extends AbstractAmqpServerFactory {
    /** How long an adapter may keep an answer: the default of Hono's own registries. */
    private static final long KEPT_SECONDS = 180;

    @Inject
    Registry registry;

    @Override
    protected TenantService createTenantService() {
        return new Tenants();
    }

    @Override
    protected AbstractRegistrationService createRegistrationService() {
        return new Registrations();
    }

    @Override
    protected AbstractCredentialsService createCredentialsService() {
        return new Credentials();
    }

    private final class Tenants extends AbstractTenantService {
        @Override
        public Future<TenantResult<JsonObject>> get(final String id, final Span span) {
            return Future.succeededFuture(registry.tenants.find(id)
                    .map(tenant -> DeviceRegistryUtils.convertTenant(id, tenant, true))
                    .map(found -> TenantResult.from(200, found, CacheDirective.maxAgeDirective(KEPT_SECONDS)))
                    .orElseGet(() -> TenantResult.from(404)));
        }

        @Override
        public Future<TenantResult<JsonObject>> get(final X500Principal subject, final Span span) {
            return Future.succeededFuture(TenantResult.from(404));
        }
    }

    private final class Registrations extends AbstractRegistrationService {
        @Override
        protected Future<RegistrationResult> getRegistrationInformation(final DeviceKey key, final Span span) {
            return Future.succeededFuture(registry.devices.find(key)
                    .map(device -> new JsonObject()
                            .put(RegistrationConstants.FIELD_PAYLOAD_DEVICE_ID, key.getDeviceId())
                            .put(RegistrationConstants.FIELD_DATA, JsonObject.mapFrom(device)))
                    .map(found -> RegistrationResult.from(200, found, null))
                    .orElseGet(() -> RegistrationResult.from(404)));
        }

        @Override
        protected Future<Set<String>> processResolveGroupMembers(
                final String tenant, final Set<String> groups, final Span span) {
            return Future.succeededFuture(Set.of());
        }
    }

    private final class Credentials extends AbstractCredentialsService {
        @Override
        protected Future<CredentialsResult<JsonObject>> processGet(
                final TenantKey tenant, final CredentialKey key, final JsonObject context, final Span span) {
            return Future.succeededFuture(registry.owner(key)
                    .map(device -> described(device, key))
                    .map(found -> CredentialsResult.from(200, found, getCacheDirective(key.getType(), KEPT_SECONDS)))
                    .orElseGet(() -> CredentialsResult.from(404)));
        }

        private JsonObject described(final DeviceKey device, final CredentialKey key) {
            final List<JsonObject> secrets = registry.credentials.find(device).orElse(List.of()).stream()
                    .filter(credential -> isNamed(credential, key))
                    .flatMap(credential -> credential.getSecrets().stream())
                    .map(JsonObject::mapFrom)
                    .toList();
            return new JsonObject()
                    .put(CredentialsConstants.FIELD_PAYLOAD_DEVICE_ID, device.getDeviceId())
                    .put(CredentialsConstants.FIELD_TYPE, key.getType())
                    .put(CredentialsConstants.FIELD_AUTH_ID, key.getAuthId())
                    .put(CredentialsConstants.FIELD_SECRETS, new JsonArray(secrets));
        }

        private boolean isNamed(final CommonCredential credential, final CredentialKey key) {
            return credential.getType().equals(key.getType()) && credential.getAuthId().equals(key.getAuthId());
        }
    }
}
