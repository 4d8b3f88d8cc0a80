package muster.hono;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

import org.eclipse.hono.client.ClientErrorException;
import org.eclipse.hono.deviceregistry.service.credentials.CredentialKey;
import org.eclipse.hono.deviceregistry.service.device.DeviceKey;
import org.eclipse.hono.deviceregistry.util.Versioned;
import org.eclipse.hono.service.management.credentials.CommonCredential;
import org.eclipse.hono.service.management.device.Device;
import org.eclipse.hono.service.management.tenant.Tenant;

import jakarta.inject.Singleton;

/** What the registry knows, in memory. */
@Singleton
class Registry {
    final Table<String, Tenant> tenants = new Table<>();
    final Table<DeviceKey, Device> devices = new Table<>();
    /** Every device has a row here, with an empty list at first. */
    final Table<DeviceKey, List<CommonCredential>> credentials = new Table<>();
    private final Map<CredentialKey, DeviceKey> owners = new ConcurrentHashMap<>();

    Optional<DeviceKey> owner(final CredentialKey key) {
        return Optional.ofNullable(owners.get(key));
    }

    synchronized Versioned<Device> createDevice(final DeviceKey key, final Device device) {
        final Versioned<Device> created = devices.create(key, device);
        credentials.create(key, List.of());
        return created;
    }

    synchronized void deleteDevice(final DeviceKey key, final Optional<String> version) {
        devices.delete(key, version);
        disown(key, credentials.delete(key, Optional.empty()));
    }

    synchronized Versioned<List<CommonCredential>> replaceCredentials(
            final DeviceKey key, final Optional<String> version, final List<CommonCredential> wanted) {
        final List<CommonCredential> former = credentials.read(key).getValue();
        for (final CommonCredential credential : wanted) {
            if (!owner(named(key, credential)).orElse(key).equals(key)) {
                throw new ClientErrorException(409, credential.getAuthId() + " is another device's");
            }
            former.stream().filter(old -> named(key, old).equals(named(key, credential))).forEach(credential::merge);
            credential.createMissingSecretIds();
        }
        final Versioned<List<CommonCredential>> replaced = credentials.update(key, version, List.copyOf(wanted));
        disown(key, former);
        wanted.forEach(credential -> owners.put(named(key, credential), key));
        return replaced;
    }

    private void disown(final DeviceKey key, final List<CommonCredential> former) {
        former.forEach(credential -> owners.remove(named(key, credential)));
    }

    private static CredentialKey named(final DeviceKey device, final CommonCredential credential) {
        return CredentialKey.from(device.getTenantId(), credential.getAuthId(), credential.getType());
    }
}
