package muster.hono;

import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Supplier;

import org.eclipse.hono.client.ClientErrorException;
import org.eclipse.hono.deviceregistry.service.credentials.AbstractCredentialsManagementService;
import org.eclipse.hono.deviceregistry.service.device.AbstractDeviceManagementService;
import org.eclipse.hono.deviceregistry.service.device.DeviceKey;
import org.eclipse.hono.deviceregistry.service.tenant.AbstractTenantManagementService;
import org.eclipse.hono.deviceregistry.service.tenant.DefaultTenantInformationService;
import org.eclipse.hono.deviceregistry.service.tenant.TenantInformationService;
import org.eclipse.hono.deviceregistry.util.Versioned;
import org.eclipse.hono.service.auth.SpringBasedHonoPasswordEncoder;
import org.eclipse.hono.service.management.Id;
import org.eclipse.hono.service.management.OperationResult;
import org.eclipse.hono.service.management.Result;
import org.eclipse.hono.service.management.credentials.CommonCredential;
import org.eclipse.hono.service.management.credentials.CredentialsManagementService;
import org.eclipse.hono.service.management.device.Device;
import org.eclipse.hono.service.management.device.DeviceManagementService;
import org.eclipse.hono.service.management.tenant.Tenant;
import org.eclipse.hono.service.management.tenant.TenantManagementService;

import io.opentracing.Span;
import io.vertx.core.Future;
import io.vertx.core.Vertx;
import io.vertx.core.json.JsonObject;
import jakarta.enterprise.inject.Produces;
import jakarta.inject.Inject;
import jakarta.inject.Singleton;

/** The data behind the management API, which is Hono's own; searching is not supported. */
@Singleton
class Management {
    private static final int BCRYPT_ROUNDS = 10;

    @Inject
    Vertx vertx;
    @Inject
    Registry registry;

    @Produces
    @Singleton
    TenantManagementService tenants() {
        return new Tenants();
    }

    @Produces
    @Singleton
    TenantInformationService tenantInformation(final TenantManagementService tenants) {
        return new DefaultTenantInformationService(tenants);
    }

    @Produces
    @Singleton
    DeviceManagementService devices(final TenantInformationService tenants) {
        final Devices devices = new Devices();
        devices.setTenantInformationService(tenants);
        return devices;
    }

    @Produces
    @Singleton
    CredentialsManagementService credentials(final TenantInformationService tenants) {
        final Credentials credentials = new Credentials();
        credentials.setTenantInformationService(tenants);
        return credentials;
    }

    private static <T> Future<T> answer(final Supplier<T> work) {
        try {
            return Future.succeededFuture(work.get());
        } catch (final ClientErrorException refusal) {
            return Future.failedFuture(refusal);
        }
    }

    private static <T> OperationResult<T> result(final int status, final T payload, final Versioned<?> row) {
        return OperationResult.ok(status, payload, Optional.empty(), Optional.of(row.getVersion()));
    }

    private final class Tenants extends AbstractTenantManagementService {
        Tenants() {
            super(Management.this.vertx);
        }

        @Override
        protected Future<OperationResult<Id>> processCreateTenant(final String id, final Tenant tenant, final Span span) {
            return answer(() -> result(201, Id.of(id), registry.tenants.create(id, tenant)));
        }

        @Override
        protected Future<OperationResult<Tenant>> processReadTenant(final String id, final Span span) {
            return answer(() -> {
                final Versioned<Tenant> row = registry.tenants.read(id);
                return result(200, row.getValue(), row);
            });
        }

        @Override
        protected Future<OperationResult<Void>> processUpdateTenant(
                final String id, final Tenant tenant, final Optional<String> version, final Span span) {
            return answer(() -> result(204, null, registry.tenants.update(id, version, tenant)));
        }

        @Override
        protected Future<Result<Void>> processDeleteTenant(
                final String id, final Optional<String> version, final Span span) {
            return answer(() -> {
                registry.tenants.delete(id, version);
                return Result.from(204);
            });
        }
    }

    private final class Devices extends AbstractDeviceManagementService {
        Devices() {
            super(Management.this.vertx);
        }

        @Override
        protected Future<OperationResult<Id>> processCreateDevice(
                final DeviceKey key, final Device device, final Span span) {
            return answer(() -> result(201, Id.of(key.getDeviceId()), registry.createDevice(key, device)));
        }

        @Override
        protected Future<OperationResult<Device>> processReadDevice(final DeviceKey key, final Span span) {
            return answer(() -> {
                final Versioned<Device> row = registry.devices.read(key);
                return result(200, row.getValue(), row);
            });
        }

        @Override
        protected Future<OperationResult<Id>> processUpdateDevice(
                final DeviceKey key, final Device device, final Optional<String> version, final Span span) {
            return answer(() -> result(204, Id.of(key.getDeviceId()), registry.devices.update(key, version, device)));
        }

        @Override
        protected Future<Result<Void>> processDeleteDevice(
                final DeviceKey key, final Optional<String> version, final Span span) {
            return answer(() -> {
                registry.deleteDevice(key, version);
                return Result.from(204);
            });
        }
    }

    private final class Credentials extends AbstractCredentialsManagementService {
        Credentials() {
            super(Management.this.vertx, new SpringBasedHonoPasswordEncoder(BCRYPT_ROUNDS), BCRYPT_ROUNDS, Set.of());
        }

        @Override
        protected Future<OperationResult<Void>> processUpdateCredentials(final DeviceKey key,
                final List<CommonCredential> wanted, final Optional<String> version, final Span span) {
            return answer(() -> result(204, null, registry.replaceCredentials(key, version, wanted)));
        }

        @Override
        protected Future<OperationResult<List<CommonCredential>>> processReadCredentials(
                final DeviceKey key, final Span span) {
            return answer(() -> {
                final Versioned<List<CommonCredential>> row = registry.credentials.read(key);
                return result(200, row.getValue().stream().map(Management::copy).toList(), row);
            });
        }
    }

    /** A copy, since whoever reads credentials takes the secrets out of what it is given. */
    private static CommonCredential copy(final CommonCredential credential) {
        return JsonObject.mapFrom(credential).mapTo(CommonCredential.class);
    }
}
