"""`vanilla-transformer predict`, from a checkout."""

from hf_vanilla_transformer.commands.predict import main


if __name__ == "__main__":
    main()
