"""The settings of a server: what they are, where their values come from, and how a running server takes new ones.

The one decision: **all settings are rows of one table.** The flags, environment variables, settings file, reload and
documentation derive from it, so a setting is added in one place.

``settings``     the table: each field of ``Config`` is a row with default, unit, help text and bounds
``config``       loads the settings from flags, environment, TOML file and defaults
``data_folder``  which folder keeps the data, and that only its user can open it
``origins``      the origins of pages as browsers send them
``plain_text``   what editors and shells add to a value, and is taken away
``public_url``   the address at which clients reach the server behind a proxy
``reload``       what a server does at SIGHUP
"""
